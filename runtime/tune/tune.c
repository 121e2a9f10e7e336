/* The tuner: chooses the configuration of a launch.
 *
 * Choices are looked up by a key of the arguments under a lock that is held briefly. A new key takes the tuning lock.
 * The choice is read from disk, or found by running the configurations (tune_try.c). Meanwhile known keys can be
 * launched. */
#include "runtime/tune/tune.h"

#include <stdlib.h>

#include "runtime/api/api_guard.h"
#include "runtime/cache/cache.h"
#include "runtime/launch/composite.h"
#include "runtime/tune/tunings.h"

enum { WARMUP_MS = 5, REP_MS = 10, LIMIT_MS = 10000, PROPOSED_RUNS = 5 };

/* --- texts ----------------------------------------------------------------------------------------------------- */

static void json_number(struct strbuf *out, const char *text)
{
	bool plain = strspn(text, "+-.0123456789e") == strlen(text);
	if (plain)
		sb_puts(out, text);
	else /* float('inf') */
		sb_json(out, text);
}

static void json_argument(struct strbuf *out, const tl_arg *a)
{
	switch (a->kind) {
	case TL_ARG_NONE: sb_puts(out, "null"); return;
	case TL_ARG_BOOL: sb_puts(out, a->i ? "true" : "false"); return;
	case TL_ARG_STR:
	case TL_ARG_FUNC: sb_json(out, a->s); return;
	case TL_ARG_TYPE: sb_json(out, tl_dtype_name(a->dtype)); return;
	case TL_ARG_PTR: sb_printf(out, "\"*%s\"", tl_dtype_name(a->dtype)); return;
	case TL_ARG_DESCRIPTOR: sb_printf(out, "\"tensordesc<%s>\"", tl_dtype_name(a->descriptor->dtype)); return;
	case TL_ARG_TUPLE:
		sb_puts(out, "[");
		for (size_t i = 0; i < a->tuple->len; i++) {
			sb_puts(out, i ? "," : "");
			json_argument(out, &a->tuple->items[i]);
		}
		sb_puts(out, "]");
		return;
	default: json_number(out, literal_text(out->arena, a)); return;
	}
}

/* `word`: the value is a word. */
static void add_option(struct strbuf *text, struct strbuf *json, const char *name, const char *value, bool word)
{
	const char *quote = word ? "\"" : "";
	if (!strcmp(value, "0") || !strcmp(value, "default"))
		return;
	sb_printf(text, "%s%s=%s", text->len ? " " : "", name, value);
	sb_printf(json, "%s\"%s\":%s%s%s", json->len > 1 ? "," : "", name, quote, value, quote);
}

/* Makes the texts of a candidate whose values and options are set. */
static void describe_candidate(const tl_kernel *k, struct arena *a, struct candidate *c)
{
	struct strbuf text = {.arena = a}, json = {.arena = a};
	sb_puts(&text, "");
	sb_puts(&json, "{");
	for (u32 i = 0; i < c->nvalues; i++) {
		const char *name = k->params.at[c->params[i]].name;
		sb_printf(&text, "%s%s=%s", i ? " " : "", name, literal_text(a, &c->values[i]));
		sb_puts(&json, i ? "," : "");
		sb_json(&json, name);
		sb_puts(&json, ":");
		json_argument(&json, &c->values[i]);
	}
	for (u32 i = 0; i < CODEGEN_NUMBERS; i++)
		add_option(&text, &json, codegen_numbers[i].name,
			   codegen_number_text(a, (int)i, c->options.numbers[i]), codegen_numbers[i].words);
	add_option(&text, &json, "max_ctas", arena_printf(a, "%d", c->max_ctas), false);
	sb_puts(&json, "}");
	c->text = text.len ? text.at : "the kernel as it is";
	c->json = json.at;
}

/* --- tuners ---------------------------------------------------------------------------------------------------- */

static void free_choice(struct tuned_choice *c)
{
	arena_free(&c->arena);
	free(c);
}

static void free_tuner(void *tuner)
{
	tl_tuner *t = tuner;
	for (u32 i = 0; i < t->choices.len; i++)
		free_choice(t->choices.at[i]);
	pthread_mutex_destroy(&t->lock);
	pthread_mutex_destroy(&t->tuning);
	arena_free(&t->arena);
	free(t);
}

API_DESTRUCTOR(tl_tuner_destroy, t ? t->kernel->module->ctx : NULL, (tl_tuner *t), (t))
{
	if (t)
		free_tuner(t);
}

static tl_status mark(const tl_tuner *t, const char *what, const char *const *names, size_t n, bool *of)
{
	for (size_t i = 0; i < n; i++) {
		i32 p = names ? param_index(&t->kernel->params, names[i]) : -1;
		if (p < 0)
			return failed(TL_ERR_ARGUMENT,
				      "tl_tuner_create: %s names '%.100s', which is not a parameter of %s", what,
				      names && names[i] ? names[i] : "(NULL)", t->kernel->name);
		of[p] = true;
	}
	return TL_OK;
}

static void mark_known(const tl_tuner *t, const char *name, bool *of)
{
	i32 p = param_index(&t->kernel->params, name);
	if (p >= 0)
		of[p] = true;
}

/* Reads the decorators that do not depend on a launch. */
static tl_status take_decorators(tl_tuner *t)
{
	struct decorators d;
	tl_status s = decorators_read(t->kernel, NULL, 0, DECORATORS_KNOWN, &d);
	if (s)
		return s;
	const struct tuning *said = &d.tuning;
	tl_tuning *o = &t->options;
	if (!o->nkeys)
		for (u32 i = 0; i < said->keys.len; i++) /* unknown names are reported at a launch */
			mark_known(t, said->keys.at[i], t->is_key);
	for (u32 i = 0; i < said->reset.len; i++)
		mark_known(t, said->reset.at[i], t->resets);
	for (u32 i = 0; i < said->restore.len; i++)
		mark_known(t, said->restore.at[i], t->restores);
	o->warmup_ms = o->warmup_ms ? o->warmup_ms : said->warmup_ms;
	o->rep_ms = o->rep_ms ? o->rep_ms : said->rep_ms;
	decorators_free(&d);
	return TL_OK;
}

static tl_status keep_helper(tl_tuner *t)
{
	const char *const *words = t->options.helper;
	u32 n = 0;
	while (words && words[n])
		n++;
	if (words && !n)
		return failed(TL_ERR_ARGUMENT, "tl_tuner_create: helper is an empty command");
	const char **kept = arena_array(&t->arena, const char *, n + 1);
	for (u32 i = 0; i < n; i++)
		kept[i] = arena_str(&t->arena, words[i], strlen(words[i]));
	t->options.helper = words ? kept : NULL;
	return TL_OK;
}

static tl_status set_up(tl_tuner *t)
{
	u32 n = t->kernel->params.len;
	t->is_key = arena_array(&t->arena, bool, n);
	t->resets = arena_array(&t->arena, bool, n);
	t->restores = arena_array(&t->arena, bool, n);
	tl_tuning *o = &t->options;
	tl_status s = mark(t, "keys", o->keys, o->nkeys, t->is_key);
	if (!s)
		s = mark(t, "reset", o->reset, o->nreset, t->resets);
	if (!s)
		s = mark(t, "restore", o->restore, o->nrestore, t->restores);
	if (!s)
		s = keep_helper(t);
	if (!s && t->kernel->decorated)
		s = take_decorators(t);
	o->warmup_ms = o->warmup_ms > 0 ? o->warmup_ms : WARMUP_MS;
	o->rep_ms = o->rep_ms > 0 ? o->rep_ms : REP_MS;
	o->limit_ms = o->limit_ms > 0 ? o->limit_ms : LIMIT_MS;
	return s;
}

API_FUNCTION(tl_tuner_create, k ? k->module->ctx : NULL, (tl_kernel *k, const tl_tuning *options, tl_tuner **out),
	     (k, options, out))
{
	if (!k || !out)
		return failed(TL_ERR_ARGUMENT, "tl_tuner_create: %s is NULL", k ? "out" : "the kernel");
	*out = NULL;
	for (u32 i = 0; options && i < ARRAY_LEN(options->reserved); i++)
		if (options->reserved[i] || options->unused)
			return failed(TL_ERR_ARGUMENT,
				      "tl_tuner_create: a reserved field of tl_tuning is not 0: this is libtl %s",
				      TL_VERSION);
	tl_tuner *t = tl_calloc(sizeof *t);
	t->kernel = k;
	if (options)
		t->options = *options;
	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->tuning, NULL);
	struct cleanup c;
	cleanup_push(&c, free_tuner, t);
	tl_status s = set_up(t);
	if (s) {
		cleanup_run(&c);
		return s;
	}
	cleanup_drop(&c);
	*out = t;
	return TL_OK;
}

/* A copy of a compile-time value whose text is in `a`. */
static tl_arg kept_value(struct arena *a, tl_arg v)
{
	if ((v.kind == TL_ARG_STR || v.kind == TL_ARG_FUNC) && v.s)
		v.s = arena_str(a, v.s, strlen(v.s));
	return v;
}

static tl_status check_value(const tl_kernel *k, const tl_named_arg *v)
{
	i32 p = param_index(&k->params, v->name);
	if (p < 0)
		return failed(TL_ERR_ARGUMENT, "tl_tuner_add: '%.100s' is not a parameter of %s",
			      v->name ? v->name : "(NULL)", k->name);
	struct key key;
	key_init(&key, 0);
	bool fits = v->value.kind <= TL_ARG_UINT && v->value.kind != TL_ARG_PTR &&
		    key_add_leaf(&key, &k->params, &k->params.at[p], &v->value);
	key_free(&key);
	return fits ? TL_OK
		    : failed(TL_ERR_ARGUMENT, "tl_tuner_add: %s: '%s' cannot have this value", k->name, v->name);
}

API_FUNCTION(tl_tuner_add, t ? t->kernel->module->ctx : NULL,
	     (tl_tuner *t, const tl_config *options, const tl_named_arg *values, size_t n), (t, options, values, n))
{
	if (!t || (!values && n))
		return failed(TL_ERR_ARGUMENT, "tl_tuner_add: %s NULL", t ? "the values are" : "the tuner is");
	if (n > t->kernel->params.len)
		return failed(TL_ERR_ARGUMENT, "tl_tuner_add: %zu values, but %s has %u parameters", n, t->kernel->name,
			      t->kernel->params.len);
	if (t->choices.len)
		return failed(TL_ERR_ARGUMENT, "tl_tuner_add: %s has been tuned already", t->kernel->name);
	struct candidate c = {.params = arena_array(&t->arena, u32, n + 1),
			      .values = arena_array(&t->arena, tl_arg, n + 1),
			      .nvalues = (u32)n};
	for (size_t i = 0; i < n; i++) {
		tl_status s = check_value(t->kernel, &values[i]);
		if (s)
			return s;
		c.params[i] = (u32)param_index(&t->kernel->params, values[i].name);
		c.values[i] = kept_value(&t->arena, values[i].value);
	}
	if (options) {
		c.options = options_of_config(options);
		c.max_ctas = options->max_ctas;
	}
	describe_candidate(t->kernel, &t->arena, &c);
	vec_push(&t->arena, &t->added, c);
	return TL_OK;
}

/* --- configurations of a launch -------------------------------------------------------------------------------- */

static const char *ignored(struct arena *a, const struct configuration *c)
{
	const char *what = c->has_hook ? "pre_hook" : c->num_ctas > 1 ? "num_ctas" : NULL;
	return what ? arena_printf(a, "%s has no effect here", what) : NULL;
}

static tl_status take_configuration(const tl_tuner *t, struct unit *u, const struct configuration *from,
				    struct tuned_choice *ch)
{
	struct arena *a = &ch->arena;
	struct candidate *c = &ch->at[ch->n++];
	*c = (struct candidate){.params = arena_array(a, u32, from->nvalues + 1),
				.values = arena_array(a, tl_arg, from->nvalues + 1),
				.options = from->options};
	for (u32 i = 0; i < from->nvalues; i++) {
		const struct tuned_value *v = &from->values[i];
		tl_arg value;
		if (!argument_of_text(&u->arena, v->literal, &value))
			return failed(TL_ERR_COMPILE,
				      "%s: a configuration sets '%s' to %s, which is not a parameter value",
				      t->kernel->name, v->name, v->literal);
		c->params[c->nvalues] = (u32)param_index(&t->kernel->params, v->name);
		c->values[c->nvalues++] = kept_value(a, value);
	}
	c->why = from->pruned ? arena_str(a, from->pruned, strlen(from->pruned)) : ignored(a, from);
	c->outcome = from->pruned ? OUTCOME_PRUNED : OUTCOME_OPEN;
	describe_candidate(t->kernel, a, c);
	return TL_OK;
}

/* For a kernel without configurations: numbers of warps and stages, of which the model chooses some. */
static void propose_candidates(const tl_tuner *t, const struct request *r, struct tuned_choice *ch)
{
	static const int warps[] = {4, 8, 2, 1, 16}, stages[] = {3, 2, 4};
	const struct device *dev = t->kernel->module->ctx->dev;
	if (!dev->ops->target || dev->ops->target(dev).kind != TARGET_CUDA)
		return;
	ch->at = arena_array(&ch->arena, struct candidate, ARRAY_LEN(warps) * ARRAY_LEN(stages));
	for (u32 i = 0; i < ARRAY_LEN(warps) * ARRAY_LEN(stages); i++) {
		struct candidate c = {.params = arena_array(&ch->arena, u32, 1),
				      .values = arena_array(&ch->arena, tl_arg, 1),
				      .options = {.num_warps = warps[i / ARRAY_LEN(stages)],
						  .num_stages = stages[i % ARRAY_LEN(stages)]}};
		if ((r->cfg->num_warps && i / ARRAY_LEN(stages)) || (r->cfg->num_stages && i % ARRAY_LEN(stages)))
			continue; /* the launch has this number */
		c.options.num_warps = r->cfg->num_warps ? 0 : c.options.num_warps;
		c.options.num_stages = r->cfg->num_stages ? 0 : c.options.num_stages;
		describe_candidate(t->kernel, &ch->arena, &c);
		ch->at[ch->n++] = c;
	}
	ch->most = ch->most ? ch->most : PROPOSED_RUNS;
}

/* The configurations of the decorators for these arguments, and the added configurations. */
static tl_status list_candidates(const tl_tuner *t, const struct request *r, struct tuned_choice *ch)
{
	struct decorators d = {.unit = NULL};
	tl_status s = TL_OK;
	if (t->kernel->decorated)
		s = decorators_read(t->kernel, r->args, r->nargs, LAUNCH_CONFIGURATIONS, &d);
	if (s)
		return s;
	u32 n = d.tuning.configurations.len;
	ch->at = arena_array(&ch->arena, struct candidate, n + t->added.len + 1);
	for (u32 i = 0; i < n && !s; i++)
		s = take_configuration(t, d.unit, &d.tuning.configurations.at[i], ch);
	if (d.unit)
		decorators_free(&d);
	for (u32 i = 0; i < t->added.len; i++)
		ch->at[ch->n++] = t->added.at[i];
	ch->most = (u32)t->options.most;
	if (!s && !ch->n)
		propose_candidates(t, r, ch);
	if (!s && !ch->n)
		s = failed(TL_ERR_ARGUMENT,
			   "%s has no configurations\n      = hint: add some with @triton.autotune or tl_tuner_add",
			   t->kernel->name);
	return s;
}

static tl_status given_twice(const tl_tuner *t, u32 p)
{
	return failed(TL_ERR_ARGUMENT,
		      "%s: argument %u, '%s', is given, but the kernel's configurations set it\n      = hint: leave it "
		      "open, with tl_open()",
		      t->kernel->name, p + 1, t->kernel->params.at[p].name);
}

tl_status candidate_plan(const tl_tuner *t, const struct request *r, const struct candidate *c, tl_config *config,
			 tl_arg *args)
{
	const struct params *ps = &t->kernel->params;
	tl_arg room[MAX_KERNEL_PARAMS];
	const tl_arg *all = args;
	size_t n = ps->len;
	*config = *r->cfg;
	for (u32 i = 0; i < n; i++)
		args[i] = i < r->nargs ? r->args[i] : tl_open();
	for (u32 i = 0; i < c->nvalues; i++) {
		if (args[c->params[i]].kind != TL_ARG_OPEN)
			return given_twice(t, c->params[i]);
		args[c->params[i]] = c->values[i];
	}
	tl_status s = t->kernel->decorated ? complete_arguments(t->kernel, &all, &n, room) : TL_OK;
	if (s)
		return s;
	for (u32 i = 0; i < n; i++)
		args[i] =
			all[i].kind != TL_ARG_OPEN || ps->at[i].has_default != DEFAULT_VALUE ? all[i] : ps->at[i].value;
	const struct codegen_options given = options_of_config(r->cfg);
	struct codegen_options o = codegen_options_or(c->options, &given);
	o.debug = given.debug;
	o.wraps = given.wraps;
	set_options_of_config(config, &o);
	config->max_ctas = c->max_ctas ? c->max_ctas : config->max_ctas;
	if (!r->plan)
		return TL_OK;
	s = r->plan(r->user, config, args, n);
	return s ? failed(s, "%s: its plan refuses the configuration %s", t->kernel->name, c->text) : TL_OK;
}

/* --- keys ------------------------------------------------------------------------------------------------------ */

/* True if the key contains the argument's value, false if only its type. */
static bool counts(const tl_tuner *t, u32 i, const tl_arg *a)
{
	return t->is_key[i] || t->kernel->params.at[i].constant || a->constant;
}

static tl_dtype type_of_key(const tl_arg *a)
{
	return a->kind == TL_ARG_DESCRIPTOR && a->descriptor ? a->descriptor->dtype : a->dtype;
}

static void make_key(const tl_tuner *t, const struct request *r, struct key *key)
{
	for (u32 i = 0; i < r->nargs; i++) {
		const tl_arg *a = &r->args[i];
		if (counts(t, i, a) && a->kind != TL_ARG_PTR)
			key_add_value(key, a);
		else
			*key_extend(key, 1) = (u64)a->kind | (u64)type_of_key(a) << 8;
	}
}

static const char *json_key(const tl_tuner *t, const struct request *r, struct arena *a)
{
	struct strbuf out = {.arena = a};
	sb_puts(&out, "{");
	for (u32 i = 0; i < r->nargs; i++) {
		const tl_arg *x = &r->args[i];
		if (x->kind == TL_ARG_OPEN || (!counts(t, i, x) && x->kind != TL_ARG_PTR && !is_composite(x)))
			continue;
		sb_puts(&out, out.len > 1 ? "," : "");
		sb_json(&out, t->kernel->params.at[i].name);
		sb_puts(&out, ":");
		json_argument(&out, x);
	}
	sb_puts(&out, "}");
	return out.at;
}

static struct tuned_choice *find_choice(tl_tuner *t, const struct key *key)
{
	pthread_mutex_lock(&t->lock);
	struct tuned_choice *c = key_table_find(&t->table, key);
	pthread_mutex_unlock(&t->lock);
	return c;
}

static void add_choice(tl_tuner *t, struct tuned_choice *c)
{
	struct held h;
	lock_hold(&h, &t->lock);
	vec_push(&t->arena, &t->choices, c);
	key_table_add(&t->table, &c->keyed);
	lock_release(&h);
}

/* --- on disk --------------------------------------------------------------------------------------------------- */

static void disk_key(const tl_tuner *t, struct tuned_choice *ch, struct tuning_key *out)
{
	const tl_module *m = t->kernel->module;
	tl_device_info info = {.name = ""};
	m->ctx->dev->ops->info(m->ctx->dev, &info);
	struct strbuf all = sb_empty(&ch->arena);
	if (ch->most)
		sb_printf(&all, "the first %u\n", ch->most);
	for (u32 i = 0; i < ch->n; i++)
		sb_printf(&all, "%s%s\n", ch->at[i].json, ch->at[i].outcome == OUTCOME_PRUNED ? " pruned" : "");
	*out = (struct tuning_key){
		.kernel = t->kernel->name,
		.device = arena_str(&ch->arena, info.name, strlen(info.name)),
		.version = arena_printf(&ch->arena, TL_VERSION "-%08x", (unsigned)cache_build()),
		.source = m->hash,
		.configurations = hash_bytes(all.at, all.len, 0),
		.key = ch->key,
	};
}

static void take_stored(void *choice, const char *path, const struct tuning_key *key, const struct tuned *s)
{
	(void)path, (void)key;
	struct tuned_choice *ch = choice;
	for (u32 i = 0; i < ch->n; i++) {
		struct candidate *c = &ch->at[i];
		if (strcmp(c->json, s->values) != 0 || c->outcome == OUTCOME_PRUNED)
			continue;
		if (s->failed) {
			c->outcome = OUTCOME_FAILED;
			c->why = arena_printf(&ch->arena, "it failed before: %s", s->failed);
			c->status = TL_ERR_KERNEL;
			continue;
		}
		c->outcome = OUTCOME_TIMED;
		c->cost = s->cost;
		ch->best = c;
		ch->unit = arena_str(&ch->arena, s->unit, strlen(s->unit));
	}
}

/* Reads the choice from disk. False: it is not there. */
static bool read_stored(const tl_tuner *t, struct tuned_choice *ch, const struct tuning_key *key)
{
	if (cache_trusted(t->kernel->module))
		tunings_read(&ch->arena, key, take_stored, ch);
	ch->stored = ch->best && !t->options.again;
	for (u32 i = 0; i < ch->n && !ch->stored; i++) /* a choice that is not a candidate is ignored */
		if (ch->at[i].outcome == OUTCOME_TIMED) {
			ch->at[i].outcome = OUTCOME_OPEN;
			ch->at[i].cost = 0;
		}
	if (!ch->stored)
		ch->best = NULL;
	return ch->stored;
}

static void store(const struct tuned_choice *ch, const struct tuning_key *key, const char *failed)
{
	if (!ch->best)
		return;
	tunings_write(key, &(struct tuned){.values = ch->best->json,
					   .failed = failed,
					   .cost = ch->best->cost,
					   .unit = ch->unit,
					   .tried = ch->tried});
}

/* --- choosing -------------------------------------------------------------------------------------------------- */

/* Copies the data that the argument points to, because a plan may use one descriptor for all configurations. */
static void keep_argument(struct arena *a, tl_arg *x)
{
	if (x->kind == TL_ARG_DESCRIPTOR && x->descriptor)
		x->descriptor = arena_dup(a, x->descriptor, sizeof *x->descriptor);
	if (x->kind != TL_ARG_TUPLE || !x->tuple || (x->tuple->len && !x->tuple->items))
		return;
	tl_tuple *t = arena_dup(a, x->tuple, sizeof *t);
	tl_arg *items = arena_dup(a, t->items, t->len * sizeof *items);
	for (size_t i = 0; i < t->len; i++)
		keep_argument(a, &items[i]);
	t->items = items;
	x->tuple = t;
}

/* Plans a launch of each candidate. Candidates without a plan are left out. */
static tl_status plan_all(const tl_tuner *t, const struct request *r, struct tuned_choice *ch)
{
	for (u32 i = 0; i < ch->n; i++) {
		struct candidate *c = &ch->at[i];
		c->args = arena_array(&ch->arena, tl_arg, t->kernel->params.len + 1);
		if (c->outcome != OUTCOME_OPEN)
			continue;
		tl_status s = candidate_plan(t, r, c, &c->config, c->args);
		if (s && !r->plan)
			return s; /* the error is in the arguments */
		for (u32 k = 0; k < t->kernel->params.len && !s; k++)
			keep_argument(&ch->arena, &c->args[k]);
		if (s) {
			c->outcome = OUTCOME_PRUNED;
			c->why = arena_str(&ch->arena, tl_error(NULL), strlen(tl_error(NULL)));
		}
	}
	return TL_OK;
}

struct tuning_of {
	tl_tuner *tuner;
	const struct request *request;
	struct tuned_choice *choice;
	tl_status status;
};

static tl_status tune(tl_tuner *t, const struct request *r, struct tuned_choice *ch)
{
	struct tuning_key key;
	tl_status s = list_candidates(t, r, ch);
	if (s)
		return s;
	ch->key = json_key(t, r, &ch->arena);
	disk_key(t, ch, &key);
	if (read_stored(t, ch, &key))
		return TL_OK;
	s = plan_all(t, r, ch);
	if (s)
		return s;
	s = choice_try(t, ch);
	if (!s && ch->tried)
		store(ch, &key, NULL);
	else if (s && ch->best)
		store(ch, &key, ch->best->why);
	return s;
}

static void tune_body(void *arg)
{
	struct tuning_of *of = arg;
	struct c_locale c;
	enter_c_locale(&c);
	of->status = tune(of->tuner, of->request, of->choice);
	leave_c_locale(&c);
}

/* Makes a choice for a new key. The caller holds the tuning lock. */
static tl_status new_choice(tl_tuner *t, const struct request *r, const struct key *key, struct tuned_choice **out)
{
	*out = find_choice(t, key); /* another thread may have tuned the key meanwhile */
	if (*out)
		return TL_OK;
	struct tuned_choice *ch = keyed_new(sizeof *ch, key);
	struct tuning_of of = {t, r, ch, TL_OK};
	tl_status s = caught(tune_body, &of);
	s = s ? s : of.status;
	if (s) {
		free_choice(ch);
		return s;
	}
	add_choice(t, ch);
	*out = ch;
	return TL_OK;
}

static tl_status check_request(const char *call, const tl_tuner *t, const struct request *r)
{
	if (!t || !r->cfg || (!r->args && r->nargs))
		return failed(TL_ERR_ARGUMENT, "%s: %s NULL", call,
			      !t        ? "the tuner is"
			      : !r->cfg ? "the config is"
					: "the arguments are");
	if (r->nargs > t->kernel->params.len)
		return failed(TL_ERR_ARGUMENT, "%s takes %u arguments, and %zu were given", t->kernel->name,
			      t->kernel->params.len, r->nargs);
	return TL_OK;
}

/* Checks the launch before configurations run. */
static tl_status check_launch(const tl_tuner *t, const struct request *r)
{
	if (is_captured(t->kernel->module->ctx->dev, r->cfg->stream))
		return failed(TL_ERR_ARGUMENT,
			      "%s: the stream is being captured into a CUDA graph, during which no kernel can be "
			      "tuned: choose the configuration before the capture",
			      t->kernel->name);
	return check_arguments(&t->kernel->params, r->args, r->nargs, true);
}

tl_status tuner_find(tl_tuner *t, const struct request *r, struct tuned_choice **out)
{
	struct key key;
	key_init(&key, 0);
	make_key(t, r, &key);
	*out = find_choice(t, &key);
	tl_status s = *out ? TL_OK : check_launch(t, r);
	if (!s && !*out) {
		struct held h;
		lock_hold(&h, &t->tuning);
		s = new_choice(t, r, &key, out);
		lock_release(&h);
	}
	key_free(&key);
	return s;
}

API_FUNCTION(tl_tuner_choose, t ? t->kernel->module->ctx : NULL,
	     (tl_tuner *t, const tl_config *cfg, tl_plan_fn *plan, void *user, const tl_arg *args, size_t nargs,
	      tl_choice *out),
	     (t, cfg, plan, user, args, nargs, out))
{
	const struct request r = {cfg, plan, user, args, nargs};
	struct tuned_choice *ch;
	tl_arg all[MAX_KERNEL_PARAMS];
	tl_status s = check_request("tl_tuner_choose", t, &r);
	if (out)
		*out = (tl_choice){.text = NULL};
	if (!s)
		s = tuner_find(t, &r, &ch);
	if (s || !out)
		return s;
	*out = (tl_choice){.text = ch->best->text,
			   .cost = ch->best->cost,
			   .tried = (int)ch->tried,
			   .failed = (int)ch->failed,
			   .stored = ch->stored};
	return candidate_plan(t, &r, ch->best, &out->config, all);
}

API_FUNCTION(tl_tuner_launch, t ? t->kernel->module->ctx : NULL,
	     (tl_tuner *t, const tl_config *cfg, tl_plan_fn *plan, void *user, const tl_arg *args, size_t nargs),
	     (t, cfg, plan, user, args, nargs))
{
	const struct request r = {cfg, plan, user, args, nargs};
	struct tuned_choice *ch;
	tl_config config;
	tl_arg all[MAX_KERNEL_PARAMS];
	tl_status s = check_request("tl_tuner_launch", t, &r);
	if (!s)
		s = tuner_find(t, &r, &ch);
	if (!s)
		s = candidate_plan(t, &r, ch->best, &config, all);
	return s ? s : tl_launch(t->kernel, &config, all, t->kernel->params.len);
}

/* --- reports --------------------------------------------------------------------------------------------------- */

static void report_estimate(struct strbuf *out, const struct launch_estimate *e)
{
	const struct bill *b = &e->bill;
	if (e->us > 0)
		sb_printf(out,
			  ", \"estimate\": {\"us\": %.6g, \"blocks\": %.6g, \"resident\": %d, \"registers\": %d, "
			  "\"tensor\": %.6g, \"shared\": %.6g, \"issue\": %.6g, \"special\": %.6g, \"l2\": %.6g, "
			  "\"bytes\": %.6g, \"alone\": %.6g}",
			  e->us, e->blocks, e->resident, e->registers, b->tensor, b->shared, b->issue, b->special,
			  b->l2, b->bytes, b->alone);
}

static void report_candidate(struct strbuf *out, const struct tuned_choice *ch, const struct candidate *c)
{
	static const char *const outcomes[] = {"open", "pruned", "failed", "stopped", "timed"};
	sb_printf(out, "    {\"values\": %s, \"outcome\": \"%s\"", c->json, outcomes[c->outcome]);
	if (c->cost > 0)
		sb_printf(out, ", \"cost\": %.6g", c->cost);
	if (c->equal && c->apart >= 0)
		sb_printf(out, ", \"equal_within\": %.3g", c->apart);
	else if (c->equal)
		sb_puts(out, ", \"equal_within\": null");
	if (c->resources.threads)
		sb_printf(out, ", \"registers\": %d, \"local_bytes\": %zu, \"shared_bytes\": %zu, \"threads\": %d",
			  c->resources.registers, c->resources.local_bytes, c->resources.shared_bytes,
			  c->resources.threads);
	if (c->rank)
		sb_printf(out, ", \"rank\": %u", c->rank);
	report_estimate(out, &c->estimate);
	if (c->why) {
		sb_puts(out, ", \"why\": ");
		sb_json(out, c->why);
	}
	sb_printf(out, "%s}", c == ch->best ? ", \"best\": true" : "");
}

static void report_all(const tl_tuner *t, struct strbuf *out)
{
	sb_puts(out, "[");
	for (u32 i = 0; i < t->choices.len; i++) {
		const struct tuned_choice *ch = t->choices.at[i];
		sb_printf(out, "%s\n  {\"kernel\": ", i ? "," : "");
		sb_json(out, t->kernel->name);
		sb_printf(out, ", \"key\": %s, \"unit\": \"%s\", \"stored\": %s, \"configurations\": [", ch->key,
			  ch->unit, ch->stored ? "true" : "false");
		for (u32 k = 0; k < ch->n; k++) {
			sb_puts(out, k ? ",\n" : "\n");
			report_candidate(out, ch, &ch->at[k]);
		}
		sb_puts(out, "]}");
	}
	sb_puts(out, "]\n");
}

API_FUNCTION(tl_tuner_report, t ? t->kernel->module->ctx : NULL, (tl_tuner *t, char **json), (t, json))
{
	if (!t || !json)
		return failed(TL_ERR_ARGUMENT, "tl_tuner_report: %s is NULL", t ? "json" : "the tuner");
	struct arena a = {0};
	struct cleanup c;
	struct c_locale l;
	struct held h;
	cleanup_arena(&c, &a);
	struct strbuf out = {.arena = &a};
	enter_c_locale(&l);
	lock_hold(&h, &t->lock);
	report_all(t, &out);
	lock_release(&h);
	leave_c_locale(&l);
	*json = strdup(out.at);
	cleanup_run(&c);
	return *json ? TL_OK : failed(TL_ERR_MEMORY, "out of host memory");
}

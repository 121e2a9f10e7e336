/* Decoding of instructions: the form of the table forms.def that fits the opcode and the operands. */
#include "runtime/sim/alu.h"
#include "runtime/sim/bulk.h"
#include "runtime/sim/mbarrier.h"

#include <string.h>

/* --- types ------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int bits;
} types[] = {
#define TYPE(code, name, bits) [PT_##code] = {name, bits},
#include "runtime/sim/ptx.def"
};

int ptx_bits(enum ptx_type t)
{
	return types[t].bits;
}

const char *ptx_type_name(enum ptx_type t)
{
	return t ? types[t].name : "no type";
}

static enum ptx_type type_named(const char *name, size_t len)
{
	for (u32 t = PT_PRED; t < ARRAY_LEN(types); t++)
		if (!strncmp(types[t].name, name, len) && !types[t].name[len])
			return (enum ptx_type)t;
	return PT_NONE;
}

enum ptx_type ptx_type_named(const char *name)
{
	return type_named(name, strlen(name));
}

/* --- opcodes ----------------------------------------------------------------------------------------------------- */

struct set {
	const char *name, *members;
};
static const struct set modifiers[] = {
#define MODIFIER(code, name, choices) {name, choices},
#include "runtime/sim/ptx.def"
};
static const struct set type_sets[] = {
#define TYPES(name, types) {name, types},
#include "runtime/sim/ptx.def"
};
/* The functions of the forms, in the files of their instructions. */
check_fn check_lop3, check_bfe, check_bfi, check_prmt, check_fma_native, check_int_sat;
check_fn check_access, check_store, check_atomic, check_copy, check_transfer, refuse_modes, check_st_async;
check_fn check_mbarrier, plan_mma, plan_wgmma, check_matrices, check_setmaxnreg, check_callee;
#define FORM(text, operands, sm, run, ...) run_fn run;
#include "runtime/sim/forms.def"
static const struct ptx_form forms[] = {
#define FORM(opcode, operand_list, least_sm, function, ...)                                                            \
	{.text = opcode, .operands = operand_list, .sm = least_sm, .run = function, __VA_ARGS__},
#include "runtime/sim/forms.def"
};

/* Index in `sets` of the set with this name, or -1. */
static int set_named(const struct set *sets, u32 n, const char *name, size_t len)
{
	for (u32 k = 0; k < n; k++)
		if (*sets[k].name == *name && !strncmp(sets[k].name, name, len) && !sets[k].name[len])
			return (int)k;
	return -1;
}

/* Index of a word in a list of `len` characters, separated by `between`, or -1. */
static int find_word(const char *list, size_t len, char between, const char *word)
{
	size_t want = strlen(word);
	const char *end = list + len;
	for (int index = 0; list < end; index++) {
		const char *stop = memchr(list, between, (size_t)(end - list));
		size_t have = (size_t)((stop ? stop : end) - list);
		if (have == want && !memcmp(list, word, want))
			return index;
		list += have + 1;
	}
	return -1;
}

/* Index of a word among the members of a set, or -1. */
static int find_member(const struct set *s, const char *word)
{
	return find_word(s->members, strlen(s->members), ' ', word);
}

/* A part of a form's text: the alternatives of a part of an opcode. */
struct part {
	const char *at;
	size_t len;
	bool optional;
	int modifier; /* -1: a type or a word without a meaning to `run` */
};

/* Reads the next part of a text; false at its end. */
static bool next_part(const char **text, struct part *p)
{
	if (!**text)
		return false;
	p->optional = **text == '{';
	p->at = *text + 1 + p->optional;
	p->len = strcspn(p->at, ".{}");
	*text = p->at + p->len + p->optional;
	size_t name = strcspn(p->at, "=.{}");
	p->modifier = set_named(modifiers, ARRAY_LEN(modifiers), p->at, name);
	if (p->modifier >= 0 && name < p->len) {
		p->at += name + 1;
		p->len -= name + 1;
	} else if (p->modifier >= 0) {
		p->len = 0; /* any choice */
	}
	return true;
}

/* True if `type` is one of the alternatives, or in a set of types that is. */
static bool accepts_type(const struct part *p, const char *type)
{
	for (size_t from = 0; from < p->len;) {
		const char *at = p->at + from;
		size_t len = MIN(strcspn(at, "|"), p->len - from);
		int set = set_named(type_sets, ARRAY_LEN(type_sets), at, len);
		if (set < 0 ? find_word(at, len, '|', type) >= 0 : find_member(&type_sets[set], type) >= 0)
			return true;
		from += len + 1;
	}
	return false;
}

/* Reads a shape such as m64n8k16; false for another word. */
static bool read_shape(const char *word, u32 shape[3])
{
	int end = 0;
	return sscanf(word, "m%un%uk%u%n", &shape[0], &shape[1], &shape[2], &end) == 3 && !word[end];
}

bool opcode_shape(const struct decoder *d, u32 shape[3])
{
	for (u32 k = 0; k < d->nparts; k++)
		if (read_shape(d->part[k], shape))
			return true;
	return false;
}

/* Matches a part of a form with part k of the opcode. */
static bool match_part(struct decoder *d, const struct part *p, u32 k)
{
	const char *word = d->part[k];
	u32 shape[3];
	if (p->modifier < 0)
		return find_word(p->at, p->len, '|', word) >= 0 || (*p->at == 'S' && read_shape(word, shape));
	int choice = find_member(&modifiers[p->modifier], word);
	if (choice < 0 || (p->len && find_word(p->at, p->len, '|', word) < 0))
		return false;
	d->i->mod[p->modifier] = (u8)(choice + 1);
	return true;
}

/* Takes the leftmost part of the opcode that matches. Only the first type that is left can match. */
static bool take_part(struct decoder *d, const struct part *p)
{
	bool past_type = false;
	for (u32 k = 0; k < d->nparts; k++) {
		enum ptx_type t = d->part_type[k];
		if (d->taken[k] || (t && past_type))
			continue;
		past_type |= t != PT_NONE;
		if (t ? !accepts_type(p, d->part[k]) : !match_part(d, p, k))
			continue;
		if (t)
			d->i->type[d->ntypes++] = t;
		return d->taken[k] = true;
	}
	return false;
}

/* Matches the parts of the opcode with a form's text after the mnemonic. */
static bool match_text(struct decoder *d, const char *text, const char **unknown)
{
	static const enum ptx_space spaces[] = {SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_SHARED,
						SPACE_CLUSTER, SPACE_PARAM,  SPACE_LOCAL,  SPACE_CONST};
	struct part p;
	memset(d->taken, 0, sizeof d->taken);
	memset(d->i->mod, 0, sizeof d->i->mod);
	memset(d->i->type, 0, sizeof d->i->type);
	d->ntypes = 0;
	while (next_part(&text, &p))
		if (!take_part(d, &p) && !p.optional)
			return false;
	for (u32 k = 0; k < d->nparts; k++)
		if (!d->taken[k]) {
			*unknown = d->part[k];
			return false;
		}
	d->i->space = spaces[d->i->mod[M_SPACE]];
	return true;
}

/* --- operands ---------------------------------------------------------------------------------------------------- */

bool decode_fail(struct decoder *d, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	if (d->nfitting >= d->error_nfitting) {
		d->error = arena_vprintf(d->arena, format, ap);
		d->error_nfitting = d->nfitting;
	}
	va_end(ap);
	return false;
}

bool want_operands(struct decoder *d, u32 n)
{
	return d->i->nops == n || decode_fail(d, "'%s' has %u operands", d->i->opcode, d->i->nops);
}

static bool classes_agree(enum ptx_type declared, enum ptx_type t)
{
	if (is_bits(declared) || is_bits(t))
		return true;
	if (declared == PT_PRED || t == PT_PRED || is_float(declared) || is_float(t))
		return declared == t;
	return true;
}

/* How an operand is used, from the characters before its type in the table. */
struct use {
	bool result, discardable, wider, register_only, negated, special, variable;
};

/* Adds the characters at *spec to the use. */
static struct use read_use(const char **spec, size_t *len, struct use use)
{
	for (; strchr("=_>%!$@", **spec); ++*spec, --*len) {
		use.result |= **spec == '=';
		use.discardable |= **spec == '_';
		use.wider |= **spec == '>';
		use.register_only |= **spec == '%';
		use.negated |= **spec == '!';
		use.special |= **spec == '$';
		use.variable |= **spec == '@';
	}
	return use;
}

/* True if operand `o` may be read or written as a `t`: sizes agree, and a floating-point register is not an integer. */
static bool fits_value(const struct operand *o, enum ptx_type t, struct use use)
{
	int bits = ptx_bits(t), have = ptx_bits(o->reg_type);
	bool may_be_constant = !use.result && !use.register_only;
	if (o->negated && !use.negated)
		return false;
	switch (o->kind) {
	case O_REG:
		return classes_agree(o->reg_type, t) &&
		       (have == bits || (use.wider && have > bits && t != PT_PRED && !is_float(t)));
	case O_SINK: return use.discardable && !use.register_only;
	case O_INT: return may_be_constant && (!is_float(t) || use.wider);
	case O_FLOAT:
		return may_be_constant && (is_bits(t) || is_float(t)) && !is_packed(t) &&
		       (use.wider || t == PT_F32 || t == PT_F64 || bits == (o->wide ? 64 : 32));
	case O_SPECIAL: return use.special && !is_float(t) && special_fits(o->imm, bits, use.wider);
	case O_SYMBOL: return use.variable && o->var && t != PT_PRED && !is_float(t);
	default: return false;
	}
}

static bool is_in_space(struct decoder *d, const struct operand *o, enum ptx_space space)
{
	enum ptx_space of_variable = space == SPACE_CLUSTER ? SPACE_SHARED : space;
	return !o->var || space == SPACE_GENERIC || o->var->space == of_variable ||
	       decode_fail(d, "'%s' is in another space", o->var->name);
}

static bool fit_value(struct decoder *d, const struct operand *o, const char *name, size_t len, struct use use)
{
	enum ptx_type t = *name != 't' ? type_named(name, len) : d->i->type[len == 1 ? 0 : name[1] - '0'];
	if (fits_value(o, t, use))
		return o->kind != O_SYMBOL || is_in_space(d, o, d->i->space);
	if (o->kind == O_SPECIAL && !use.special)
		return decode_fail(d, "'%s' does not read special registers such as '%s'", d->i->opcode, o->name);
	if (o->kind == O_SINK)
		return decode_fail(d, "operand %u of '%s' cannot be '_'", d->nfitting + 1, d->i->opcode);
	if (o->kind == O_VECTOR) /* the vector may fit another form */
		return false;
	return decode_fail(d, "operand %u of '%s' is not a .%s", d->nfitting + 1, d->i->opcode, ptx_type_name(t));
}

/* A vector of values with the types a&b. */
static bool fit_vector(struct decoder *d, const struct operand *o, const char *spec, size_t len, struct use use)
{
	u32 n = 0;
	for (const char *end = spec + len; spec < end; n++) {
		size_t one = MIN(strcspn(spec, "&"), (size_t)(end - spec));
		const char *next = spec + one + 1;
		struct use of_item = read_use(&spec, &one, use);
		if (o->kind != O_VECTOR || n == o->nitems || !fit_value(d, &o->items[n], spec, one, of_item))
			return false;
		spec = next;
	}
	return n == o->nitems;
}

/* As many values of a type as .vec says: a vector, or one value. An item of a vector may be "_" or a special
 * register. */
static bool fit_values(struct decoder *d, const struct operand *o, const char *spec, size_t len, struct use use)
{
	u32 n = vector_of(d->i);
	if ((o->kind == O_VECTOR) != (n > 1) || (n > 1 && o->nitems != n))
		return decode_fail(d, "'%s' with another number of values", d->i->opcode);
	use.discardable |= use.result && n > 1;
	use.special |= !use.result && n > 1;
	for (u32 k = 0; k < n; k++)
		if (!fit_value(d, &operand_items(o)[k], spec, len, use))
			return false;
	return true;
}

static bool fit_address(struct decoder *d, const struct operand *o, const char *spec)
{
	u32 ncoords = spec[1] == '.' ? d->i->mod[M_DIM] : 0;
	if (o->kind != O_ADDRESS || o->nitems != ncoords)
		return false;
	for (u32 k = 0; k < ncoords; k++)
		if (!fits_value(&o->items[k], PT_U32, (struct use){.special = true}))
			return false;
	return spec[1] == '.' || is_in_space(d, o,
					     spec[1] == 's'   ? SPACE_SHARED
					     : spec[1] == 'g' ? SPACE_GLOBAL
							      : d->i->space);
}

static bool fit_operand(struct decoder *d, const struct operand *o, const char *spec, size_t len)
{
	struct use use = read_use(&spec, &len, (struct use){0});
	if (*spec == '[')
		return fit_address(d, o, spec);
	if (*spec == '#')
		return (o->kind == O_INT && o->imm <= UINT32_MAX) ||
		       decode_fail(d, "operand %u of '%s' is not a constant below 2^32", d->nfitting + 1, d->i->opcode);
	if (!strncmp(spec, "label", len))
		return o->kind == O_LABEL;
	if (!strncmp(spec, "policy", len))
		return (o->kind == O_REG && ptx_bits(o->reg_type) == 64) ||
		       decode_fail(d, "a cache policy is a register of 64 bits");
	if (memchr(spec, '&', len))
		return fit_vector(d, o, spec, len, use);
	return spec[len - 1] == '*' ? fit_values(d, o, spec, len - 1, use) : fit_value(d, o, spec, len, use);
}

/* An operand of a form's list. */
struct place {
	const char *spec;
	size_t len;
	bool optional;
};

/* Reads the next operand of a list that the instruction has or may have; false at the end. */
static bool next_place(const struct decoder *d, const char **list, struct place *p)
{
	const char *at = *list + strspn(*list, " ");
	size_t len = strcspn(at, " ");
	if (!len || (!strcmp(at, "policy") && !d->i->mod[M_HINT]))
		return false;
	bool optional = *at == '{';
	*p = (struct place){at + optional, len - 2 * optional, optional};
	*list = at + len;
	return true;
}

static bool fit_operands(struct decoder *d, const char *list)
{
	struct place places[MAX_OPERANDS];
	u32 least = 0, most = 0;
	d->nfitting = 0;
	d->i->has_result = *list == '=';
	if (strstr(list, "..."))
		return true;
	for (; next_place(d, &list, &places[most]); most++)
		least += !places[most].optional;
	if (d->i->nops < least || d->i->nops > most)
		return want_operands(d, least);
	for (; d->nfitting < d->i->nops; d->nfitting++)
		if (!fit_operand(d, &d->i->ops[d->nfitting], places[d->nfitting].spec, places[d->nfitting].len))
			return false;
	return true;
}

/* --- instructions ---------------------------------------------------------------------------------------------- */

static bool split(struct decoder *d, const char **base)
{
	char *text = arena_str(d->arena, d->i->opcode, strlen(d->i->opcode));
	*base = text;
	d->nparts = 0;
	for (char *dot = strchr(text, '.'); dot; dot = strchr(dot, '.')) {
		*dot++ = 0;
		if (d->nparts == ARRAY_LEN(d->part))
			return decode_fail(d, "'%s' has too many parts", d->i->opcode);
		d->part[d->nparts++] = dot;
	}
	for (u32 k = 0; k < d->nparts; k++)
		d->part_type[k] = ptx_type_named(d->part[k]);
	return true;
}

/* Replaces the name of a special register by its number. */
static bool number_specials(struct decoder *d, struct operand *o)
{
	if (o->kind == O_SPECIAL) {
		int n = special_register(o->name);
		if (n < 0)
			return decode_fail(d, "'%s' is not declared and is not a known special register", o->name);
		o->imm = (u64)n;
	}
	for (u32 i = 0; i < o->nitems; i++)
		if (!number_specials(d, &o->items[i]))
			return false;
	return true;
}

/* The first architecture with the form and with its modifiers. */
static int least_sm(const struct instr *i, const struct ptx_form *f)
{
	enum { BYTES_256 = 3 }; /* of M_L2_PREFETCH */
	bool in_cluster = i->space == SPACE_CLUSTER || scope_of(i) == SCOPE_CLUSTER;
	bool has_hint = i->mod[M_HINT] || i->mod[M_L2_PREFETCH] == BYTES_256;
	return MAX(f->sm, in_cluster ? 90 : has_hint ? 80 : 0);
}

bool need_sm(struct decoder *d, int sm)
{
	bool has = sm == SM_90A ? d->module->sm == 90 && d->module->arch_specific : d->module->sm >= sm;
	return has || decode_fail(d, sm == SM_90A ? "'%s' needs sm_90a" : "'%s' needs sm_%d", d->i->opcode, sm);
}

static bool decode_form(struct decoder *d, const struct ptx_form *f)
{
	struct instr *i = d->i;
	i->run = f->run;
	i->operation = f->operation;
	i->members = f->members;
	i->is_sync = f->is_sync;
	i->is_control = f->is_control;
	return fit_operands(d, f->operands) && need_sm(d, least_sm(i, f)) && (!f->check || f->check(d));
}

/* The forms of each mnemonic, in the order of the table. */
struct form_list {
	const struct ptx_form *form;
	struct form_list *next;
};
struct form_index {
	struct interner names;
	struct map lists; /* interned mnemonic → struct form_list */
};

static void add_form(struct form_index *x, const char *name, const struct ptx_form *form)
{
	struct form_list *l = arena_new(x->lists.arena, struct form_list);
	*l = (struct form_list){form, map_get(&x->lists, name)};
	map_put(&x->lists, name, l);
}

static void index_forms(struct arena *a, struct form_index *x)
{
	*x = (struct form_index){.names.arena = a, .lists.arena = a};
	for (u32 k = ARRAY_LEN(forms); k--;) {
		const char *at = forms[k].text, *end = at + strcspn(at, ".{");
		for (size_t len; at < end; at += len + 1) {
			len = strcspn(at, "|.{");
			add_form(x, intern(&x->names, at, len), &forms[k]);
		}
	}
}

static bool decode_one(struct decoder *d)
{
	struct instr *i = d->i;
	const char *mnemonic, *unknown = NULL;
	bool matched = false;
	if (!split(d, &mnemonic))
		return false;
	for (u32 k = 0; k < i->nops; k++)
		if (!number_specials(d, &i->ops[k]))
			return false;
	const char *name = intern_find(&d->index->names, mnemonic);
	if (!name)
		return decode_fail(d, "the simulator has no instruction '%s'", i->opcode);
	for (const struct form_list *l = map_get(&d->index->lists, name); l; l = l->next) {
		if (!match_text(d, l->form->text + strcspn(l->form->text, ".{"), &unknown))
			continue;
		matched = true;
		if (decode_form(d, l->form))
			return true;
	}
	if (d->error)
		return false;
	if (!matched && unknown)
		return decode_fail(d, "the simulator does not know '.%s' of '%s'", unknown, i->opcode);
	return decode_fail(d, "the simulator has no '%s'%s", i->opcode, matched ? " with these operands" : "");
}

bool sim_decode(struct arena *a, struct ptx_module *m, const char **error)
{
	struct form_index index;
	index_forms(a, &index);
	for (u32 k = 0; k < m->nkernels; k++) {
		struct ptx_kernel *kernel = &m->kernels[k];
		if ((kernel->cluster[0] || kernel->explicit_cluster) && m->sm < 90) {
			*error = arena_printf(a, "line %u: '%s' runs in clusters, which begin with sm_90",
					      kernel->ncode ? kernel->code[0].line : 1, kernel->name);
			return false;
		}
		for (u32 n = 0; n < kernel->ncode; n++) {
			struct decoder d = {
				.arena = a, .index = &index, .module = m, .kernel = kernel, .i = &kernel->code[n]};
			if (!decode_one(&d)) {
				*error = arena_printf(a, "line %u: %s", d.i->line, d.error);
				return false;
			}
			kernel->has_fences |= !strncmp(d.i->opcode, "fence", 5) || !strncmp(d.i->opcode, "membar", 6);
		}
	}
	return true;
}

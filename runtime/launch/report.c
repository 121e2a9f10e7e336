/* Passes the compiler's diagnostics to the context's callback, and to a text in each module. */
#include <stdlib.h>

#include "runtime/cache/cache.h"
#include "runtime/api/api_guard.h"

_Static_assert((int)TL_SEVERITY_ERROR == DIAG_ERROR && (int)TL_SEVERITY_WARNING == DIAG_WARNING &&
		       (int)TL_SEVERITY_NOTE == DIAG_NOTE && (int)TL_SEVERITY_REMARK == DIAG_REMARK,
	       "tl_severity and enum diag_severity have the same order");

enum { MOST_SAID = 256 * 1024 };

/* Keeps each text once, because the variants of a kernel repeat it. If memory runs out, the text is not kept. */
static void keep(tl_module *m, const char *text, size_t len)
{
	pthread_mutex_lock(&m->said_lock);
	bool known = m->said && strstr(m->said, text);
	char *more = known || m->said_len + len > MOST_SAID ? NULL : realloc(m->said, m->said_len + len + 1);
	if (more) {
		memcpy(more + m->said_len, text, len + 1);
		m->said = more;
		m->said_len += len;
	}
	pthread_mutex_unlock(&m->said_lock);
}

static void tell(const struct diags *d, const struct message *m, const char *shown, tl_diagnostic_fn *fn, void *user)
{
	const struct source *s = m->loc.file < d->sources.len ? d->sources.at[m->loc.file] : NULL;
	tl_diagnostic t = {.severity = (tl_severity)m->severity, .text = m->text, .hint = m->hint.at, .shown = shown,
			   .length = s ? m->loc.len : 0};
	if (s) {
		t.file = s->name;
		t.line = m->loc.line;
		t.column = m->loc.col;
	}
	fn(user, &t);
}

/* The context's callback, or NULL. */
static tl_diagnostic_fn *callback(tl_context *ctx, void **user)
{
	pthread_mutex_lock(&ctx->lock);
	tl_diagnostic_fn *fn = ctx->tell;
	*user = ctx->user;
	pthread_mutex_unlock(&ctx->lock);
	return fn;
}

void report(tl_module *m, const struct unit *u)
{
	const struct diags *d = &u->diags;
	tl_context *ctx = m->ctx;
	void *user;
	tl_diagnostic_fn *fn = callback(ctx, &user);
	struct arena a = {0};
	bool is_remark = false;
	for (u32 i = 0; i < d->messages.len; i++) {
		const struct message *said = &d->messages.at[i];
		u32 end = i + 1;
		const char *from = d->text.at + said->at;
		if (said->severity != DIAG_NOTE)
			is_remark = said->severity == DIAG_REMARK;
		u32 to = end < d->messages.len ? d->messages.at[end].at : d->text.len;
		const char *shown = arena_str(&a, from, to - said->at);
		if (fn)
			tell(d, said, shown, fn, user);
		while (end < d->messages.len && d->messages.at[end].severity == DIAG_NOTE)
			end++;
		to = end < d->messages.len ? d->messages.at[end].at : d->text.len;
		if (!is_remark && said->severity != DIAG_NOTE) /* with its notes */
			keep(m, arena_str(&a, from, to - said->at), to - said->at);
	}
	arena_free(&a);
}

void report_warning(tl_module *m, const char *text, const char *hint)
{
	tl_context *ctx = m->ctx;
	void *user;
	tl_diagnostic_fn *fn = callback(ctx, &user);
	struct arena a = {0};
	const char *shown = arena_printf(&a, "warning: %s\n      = hint: %s\n", text, hint);
	const tl_diagnostic d = {.severity = TL_SEVERITY_WARNING, .text = text, .hint = hint, .shown = shown};
	if (fn)
		fn(user, &d);
	keep(m, shown, strlen(shown));
	arena_free(&a);
}

static const char trust_hint[] =
	"everyone with write access there decides which code a program runs: a folder is trusted if only this user can "
	"write it; TL_CACHE_TRUST=group also trusts the process's groups, TL_CACHE_TRUST=all everyone";

void report_distrust(tl_module *m, atomic_bool *said, const char *text)
{
	if (!atomic_exchange(said, true))
		report_warning(m, text, trust_hint);
}

bool cache_trusted(tl_module *m)
{
	struct arena a = {0};
	const char *why = cache_refused(&a);
	if (why)
		report_distrust(m, &m->ctx->said_cache, why);
	arena_free(&a);
	return !why;
}

bool wants_remarks(tl_context *ctx)
{
	pthread_mutex_lock(&ctx->lock);
	bool wanted = ctx->tell && ctx->remarks;
	pthread_mutex_unlock(&ctx->lock);
	return wanted;
}

API_FUNCTION(tl_context_diagnostics, ctx, (tl_context *ctx, tl_diagnostic_fn *fn, void *user, bool remarks),
	     (ctx, fn, user, remarks))
{
	if (!ctx)
		return failed(TL_ERR_ARGUMENT, "tl_context_diagnostics: the context is NULL");
	pthread_mutex_lock(&ctx->lock);
	ctx->tell = fn;
	ctx->user = user;
	ctx->remarks = remarks;
	pthread_mutex_unlock(&ctx->lock);
	return TL_OK;
}

API_FUNCTION(tl_module_diagnostics, m ? m->ctx : NULL, (tl_module *m, char **text), (m, text))
{
	if (!m || !text)
		return failed(TL_ERR_ARGUMENT, "tl_module_diagnostics: %s is NULL", m ? "text" : "the module");
	pthread_mutex_lock(&m->said_lock);
	*text = strdup(m->said ? m->said : "");
	pthread_mutex_unlock(&m->said_lock);
	return *text ? TL_OK : failed(TL_ERR_MEMORY, "out of host memory");
}

/* Errors: a status, and a text kept per thread.
 *
 * A thread-local buffer rather than one in the context: calls of several threads on one context then cannot
 * overwrite each other's message, and tl_context_create can fail with a text although there is no context. Texts that
 * do not fit are cut, and say so. Each call empties it first: after a success nothing old is there. */
#include "runtime/error.h"

#include "runtime/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_TEXT = 16 * 1024 };
static _Thread_local char error_text[ERROR_TEXT];

static void append(size_t at, const char *format, va_list ap)
{
	static const char cut[] = "\n… (the rest of this message was cut)";
	int n = vsnprintf(error_text + at, ERROR_TEXT - at, format, ap);
	if (n >= 0 && (size_t)n >= ERROR_TEXT - at)
		memcpy(error_text + ERROR_TEXT - sizeof cut, cut, sizeof cut);
}

tl_status failed(tl_status s, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	append(0, format, ap);
	va_end(ap);
	return s;
}

tl_status failed_text(tl_status s, const char *text)
{
	size_t len = strlen(text);
	while (len && text[len - 1] == '\n')
		len--;
	return failed(s, "%.*s", (int)(len < ERROR_TEXT * 2 ? len : ERROR_TEXT * 2), text);
}

void failed_more(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	append(strlen(error_text), format, ap);
	va_end(ap);
}

/* --- faults -------------------------------------------------------------------------------------------------- */

static tl_status status_of(enum fault fault)
{
	return fault == FAULT_NONE ? TL_OK : fault == FAULT_MEMORY ? TL_ERR_MEMORY : TL_ERR_INTERNAL;
}

tl_status caught(void (*body)(void *arg), void *arg)
{
	struct recovery r = {.text = error_text, .size = ERROR_TEXT};
	return status_of(protect(&r, body, arg));
}

bool begin_call(const tl_context *ctx)
{
	error_text[0] = 0;
	return !ctx || !atomic_load_explicit(&ctx->broken, memory_order_acquire);
}

bool guard_begin(struct guard *g, tl_context *ctx)
{
	if (!begin_call(ctx)) {
		failed(TL_ERR_INTERNAL,
		       "this context cannot be used any more, only destroyed, since an earlier call met an %s",
		       ctx->why);
		return false;
	}
	g->ctx = ctx;
	g->recovery.text = error_text;
	g->recovery.size = ERROR_TEXT;
	recovery_begin(&g->recovery);
	return true;
}

tl_status guard_caught(struct guard *g)
{
	tl_status s = status_of(g->recovery.fault);
	tl_context *ctx = g->ctx;
	if (s == TL_ERR_INTERNAL && g->recovery.in_doubt && ctx && !atomic_exchange(&ctx->marked, true)) {
		snprintf(ctx->why, sizeof ctx->why, "%.*s", (int)strcspn(error_text, "\n"), error_text);
		atomic_store_explicit(&ctx->broken, true, memory_order_release);
	}
	return s;
}

/* --- what the caller reads ----------------------------------------------------------------------------------- */

const char *tl_error(const tl_context *ctx)
{
	(void)ctx;
	return error_text;
}

const char *tl_status_name(tl_status s)
{
	switch (s) {
	case TL_OK: return "ok";
	case TL_ERR_COMPILE: return "compile error";
	case TL_ERR_ARGUMENT: return "invalid argument";
	case TL_ERR_DEVICE: return "no device";
	case TL_ERR_FILE: return "file error";
	case TL_ERR_MEMORY: return "out of memory";
	case TL_ERR_DRIVER: return "driver error";
	case TL_ERR_KERNEL: return "kernel failed";
	case TL_ERR_INTERNAL: return "internal error";
	case TL_ERR_RACE: return "race";
	case TL_ERR_NOT_BUILT: return "not built";
	}
	return "unknown status";
}

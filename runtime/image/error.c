/* Errors: a status, and a message for each thread.
 *
 * The message is in a thread-local buffer, not in the context. So calls of several threads on one context cannot
 * overwrite each other's message, and tl_context_create can fail with a message although there is no context. Messages
 * that do not fit are truncated, and say so. Each call first empties the message, so a successful call leaves none. */
#include "runtime/image/error.h"
#include "runtime/image/diagnostic_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ERROR_TEXT = 16 * 1024 };
static _Thread_local char error_text[ERROR_TEXT];

/* The data of tl_error_details. Empty texts stand for NULL. */
static _Thread_local struct details {
	tl_error_info info;
	char kernel[256], file[1024], call[64];
} details;

static void append(size_t at, const char *format, va_list ap)
{
	static const char cut[] = "\n… (the rest of this message was cut)";
	int n = vsnprintf(error_text + at, ERROR_TEXT - at, format, ap);
	if (n >= 0 && (size_t)n >= ERROR_TEXT - at)
		memcpy(error_text + ERROR_TEXT - sizeof cut, cut, sizeof cut);
}

static void begin_details(tl_status s)
{
	details.info = (tl_error_info){.status = s};
	list_set(NULL);
	details.kernel[0] = details.file[0] = details.call[0] = 0;
}

tl_status failed(tl_status s, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	append(0, format, ap);
	va_end(ap);
	begin_details(s);
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

void failed_at(const struct source_place *place)
{
	if (!place->file)
		return;
	snprintf(details.file, sizeof details.file, "%s", place->file);
	details.info.line = place->line;
	details.info.column = place->col;
}

void failed_driver(const char *call, int result)
{
	snprintf(details.call, sizeof details.call, "%s", call);
	details.info.driver_result = result;
}

void failed_in(const char *kernel)
{
	if (details.kernel[0])
		return;
	snprintf(details.kernel, sizeof details.kernel, "%s", kernel);
	tl_status s = details.info.status;
	if ((s == TL_ERR_DRIVER || s == TL_ERR_MEMORY) && !strstr(error_text, kernel))
		failed_more("\n      = note: the kernel is '%s'", kernel);
}

struct kept_error {
	struct details details;
	struct diagnostic_list *list;
	char text[];
};

struct kept_error *error_keep(void)
{
	size_t len = strlen(error_text);
	struct kept_error *e = malloc(sizeof *e + len + 1);
	if (e) {
		e->details = details;
		e->list = list_keep(list_get());
		memcpy(e->text, error_text, len + 1);
	}
	return e;
}

tl_status error_again(const struct kept_error *e)
{
	tl_status s = failed_text(e->details.info.status, e->text);
	details = e->details;
	list_set(list_keep(e->list));
	return s;
}

void error_drop(struct kept_error *e)
{
	if (e)
		list_drop(e->list);
	free(e);
}

/* --- faults -------------------------------------------------------------------------------------------------- */

static tl_status status_of(enum fault fault)
{
	return fault == FAULT_NONE ? TL_OK : fault == FAULT_MEMORY ? TL_ERR_MEMORY : TL_ERR_INTERNAL;
}

tl_status caught(void (*body)(void *arg), void *arg)
{
	struct recovery r = {.text = error_text, .size = ERROR_TEXT};
	tl_status s = status_of(protect(&r, body, arg));
	if (s)
		begin_details(s);
	return s;
}

void error_clear(void)
{
	error_text[0] = 0;
}

void error_call_succeeded(void)
{
	if (details.info.status)
		error_text[0] = 0;
}

void error_recovery(struct recovery *r)
{
	r->text = error_text;
	r->size = ERROR_TEXT;
}

tl_status error_of_fault(enum fault fault)
{
	tl_status s = status_of(fault);
	begin_details(s);
	return s;
}

/* --- reading errors ------------------------------------------------------------------------------------------ */

const char *tl_error(const tl_context *ctx)
{
	(void)ctx;
	return error_text;
}

const tl_error_info *tl_error_details(void)
{
	static const tl_error_info none = {.text = ""};
	if (!error_text[0])
		return &none;
	details.info.kernel = details.kernel[0] ? details.kernel : NULL;
	details.info.file = details.file[0] ? details.file : NULL;
	details.info.driver_call = details.call[0] ? details.call : NULL;
	details.info.text = error_text;
	if (!list_get())
		list_set(list_of_error(&details.info));
	details.info.diagnostics = list_diagnostics(list_get(), &details.info.ndiagnostics);
	return &details.info;
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

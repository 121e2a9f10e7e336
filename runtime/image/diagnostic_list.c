#include "runtime/image/diagnostic_list.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* One block of memory: this, the pointers, the diagnostics, and their texts. */
struct diagnostic_list {
	atomic_uint refs;
	size_t n;
	const tl_diagnostic *at[];
};

static const char *copy(char **to, struct text t)
{
	if (!t.at)
		return NULL;
	char *s = memcpy(*to, t.at, t.len);
	s[t.len] = 0;
	*to += t.len + 1;
	return s;
}

struct diagnostic_list *list_new(const struct diagnostic_parts *parts, size_t n)
{
	size_t bytes = sizeof(struct diagnostic_list) + n * (sizeof(tl_diagnostic *) + sizeof(tl_diagnostic));
	for (size_t i = 0; i < n; i++)
		bytes += parts[i].file.len + parts[i].text.len + parts[i].hint.len + parts[i].shown.len + 4;
	struct diagnostic_list *l = n ? malloc(bytes) : NULL;
	if (!l)
		return NULL;
	atomic_init(&l->refs, 1);
	l->n = n;
	tl_diagnostic *all = (tl_diagnostic *)(void *)(l->at + n);
	char *to = (char *)(all + n);
	for (size_t i = 0; i < n; i++) {
		all[i] = parts[i].d;
		all[i].file = copy(&to, parts[i].file);
		all[i].text = copy(&to, parts[i].text);
		all[i].hint = copy(&to, parts[i].hint);
		all[i].shown = copy(&to, parts[i].shown);
		l->at[i] = &all[i];
	}
	return l;
}

/* The rest of the line after the first `mark` in s; *after: what follows the line. */
static struct text line_after(const char *s, const char *mark, const char **after)
{
	const char *at = strstr(s, mark);
	if (!at)
		return (struct text){NULL, 0};
	at += strlen(mark);
	size_t len = strcspn(at, "\n");
	*after = at + len;
	return (struct text){at, len};
}

/* The text without the place that it begins with, "file:3:5: error: ". */
static const char *without_place(const tl_error_info *e)
{
	size_t n = e->file ? strlen(e->file) : 0;
	const char *s = e->text;
	if (n && !strncmp(s, e->file, n) && s[n] == ':') {
		s += n + 1;
		s += strspn(s, "0123456789:");
		s += *s == ' ';
	}
	return strncmp(s, "error: ", 7) ? s : s + 7;
}

struct diagnostic_list *list_of_error(const tl_error_info *e)
{
	enum { MOST = 8 };
	static const char note[] = "\n      = note: ";
	struct diagnostic_parts parts[MOST] = {{.d.severity = e->status ? TL_SEVERITY_ERROR : TL_SEVERITY_NOTE}};
	const char *text = without_place(e), *after;
	size_t n = 1;
	parts[0].d.line = e->line;
	parts[0].d.column = e->column;
	parts[0].file = text_of(e->file);
	parts[0].text = (struct text){text, strcspn(text, "\n")};
	parts[0].hint = line_after(text, "\n      = hint: ", &after);
	parts[0].shown = text_of(e->text);
	for (struct text t; n < MOST && (t = line_after(text, note, &after)).at; text = after) {
		parts[n].d.severity = TL_SEVERITY_NOTE;
		parts[n].text = t;
		parts[n++].shown = (struct text){t.at - strlen(note) + 1, t.len + strlen(note) - 1};
	}
	return list_new(parts, n);
}

struct diagnostic_list *list_keep(struct diagnostic_list *l)
{
	if (l)
		atomic_fetch_add(&l->refs, 1);
	return l;
}

void list_drop(struct diagnostic_list *l)
{
	if (l && atomic_fetch_sub(&l->refs, 1) == 1)
		free(l);
}

const tl_diagnostic *const *list_diagnostics(const struct diagnostic_list *l, size_t *n)
{
	*n = l ? l->n : 0;
	return l ? l->at : NULL;
}

/* --- the list of a thread ---------------------------------------------------------------------------------------- */

static pthread_once_t made = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void drop(void *list)
{
	list_drop(list);
}

static void make_key(void)
{
	has_key = !pthread_key_create(&key, drop);
}

/* When the library is unloaded, threads must not call it at their end. */
__attribute__((destructor)) static void delete_key(void)
{
	if (has_key)
		pthread_key_delete(key);
	has_key = false;
}

struct diagnostic_list *list_get(void)
{
	pthread_once(&made, make_key);
	return has_key ? pthread_getspecific(key) : NULL;
}

void list_set(struct diagnostic_list *l)
{
	struct diagnostic_list *before = list_get();
	if (!has_key || (l != before && pthread_setspecific(key, l))) {
		list_drop(l);
		return;
	}
	if (l != before)
		list_drop(before);
}

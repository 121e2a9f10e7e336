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

/* A diagnostic whose texts are not terminated. `at` is NULL: there is no such text. */
struct text {
	const char *at;
	size_t len;
};
struct part {
	tl_diagnostic d; /* with its numbers */
	struct text file, text, hint, shown;
};

static struct text whole(const char *s)
{
	return (struct text){s, s ? strlen(s) : 0};
}

static const char *copy(char **to, struct text t)
{
	if (!t.at)
		return NULL;
	char *s = memcpy(*to, t.at, t.len);
	s[t.len] = 0;
	*to += t.len + 1;
	return s;
}

static struct diagnostic_list *list_new(const struct part *parts, size_t n)
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

struct diagnostic_list *list_of_messages(const struct diags *d)
{
	struct part *parts = calloc(d->messages.len + 1, sizeof *parts);
	size_t n = 0;
	bool is_remark = false;
	for (u32 i = 0; parts && i < d->messages.len; i++) {
		const struct message *m = &d->messages.at[i];
		const struct source *s = m->loc.file < d->sources.len ? d->sources.at[m->loc.file] : NULL;
		u32 to = i + 1 < d->messages.len ? m[1].at : d->text.len;
		if (m->severity != DIAG_NOTE)
			is_remark = m->severity == DIAG_REMARK;
		if (is_remark)
			continue;
		struct part *p = &parts[n++];
		p->d.severity = (tl_severity)m->severity;
		if (s) {
			p->d.line = m->loc.line;
			p->d.column = m->loc.col;
			p->d.length = m->loc.len;
			p->file = whole(s->name);
		}
		p->text = whole(m->text);
		p->hint = (struct text){m->hint.at, m->hint.len};
		p->shown = (struct text){d->text.at + m->at, to - m->at};
	}
	struct diagnostic_list *l = list_new(parts, n);
	free(parts);
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
	struct part parts[MOST] = {{.d.severity = e->status ? TL_SEVERITY_ERROR : TL_SEVERITY_NOTE}};
	const char *text = without_place(e), *after;
	size_t n = 1;
	parts[0].d.line = e->line;
	parts[0].d.column = e->column;
	parts[0].file = whole(e->file);
	parts[0].text = (struct text){text, strcspn(text, "\n")};
	parts[0].hint = line_after(text, "\n      = hint: ", &after);
	parts[0].shown = whole(e->text);
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

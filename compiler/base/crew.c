#include "base/crew.h"

#include <stdlib.h>

struct member {
	struct member *next;
	pthread_t thread;
	void (*run)(void *);
	void *arg;
};

static void *begin(void *member)
{
	struct member *m = member;
	m->run(m->arg);
	return NULL;
}

bool crew_start(struct crew *c, void (*run)(void *), void *arg)
{
	struct member *m = malloc(sizeof *m);
	if (!m)
		return false;
	*m = (struct member){.run = run, .arg = arg};
	pthread_mutex_lock(&c->lock); /* whoever joins it sees the thread */
	bool ok = !pthread_create(&m->thread, NULL, begin, m);
	if (ok) {
		m->next = c->members;
		c->members = m;
	} else {
		free(m);
	}
	pthread_mutex_unlock(&c->lock);
	return ok;
}

void crew_join(struct crew *c)
{
	for (struct member *m;; free(m)) {
		pthread_mutex_lock(&c->lock);
		m = c->members;
		c->members = m ? m->next : NULL;
		pthread_mutex_unlock(&c->lock);
		if (!m)
			return;
		pthread_join(m->thread, NULL);
	}
}

#include "blocks.h"
#include "../run/suite.h"

/* --- making -------------------------------------------------------------------------------------------------- */

static void make_class(struct blocks *d, struct block_class *c)
{
	static const tl_dtype types[] = {TL_F16, TL_BF16, TL_F32, TL_F64, TL_I8,     TL_I16,   TL_I32,
					 TL_I64, TL_U8,   TL_U32, TL_U64, TL_F8E4M3, TL_F8E5M2};
	static const tl_dtype products[] = {TL_F16, TL_BF16, TL_F8E5M2, TL_I8, TL_F32};
	*c = (struct block_class){.rank = (int)random_int(1, DIMS), .size = 1, .nan = chance(30)};
	c->t = d->dots ? products[random_below(COUNT(products))] : types[random_below(COUNT(types))];
	c->rows = !d->dots && chance(15);
	if (d->dots || c->rows)
		c->rank = 2;
	int least = bits_of(c->t) >= 64 ? 1 : bits_of(c->t) == 32 ? 2 : bits_of(c->t) == 16 ? 3 : 4, room = 11;
	for (int k = c->rank - 1; k >= 0; k--) {
		bool last = k == c->rank - 1;
		int e = last ? (int)random_int(least, least + 3) : random_below(room < 4 ? room + 1 : 5);
		if (d->dots)
			e = (int)random_int(last ? 5 : 4, 6);
		else if (c->rows)
			e = last ? e : 0;
		c->size *= c->block[k] = 1 << e;
		room -= e;
	}
	if (!is_float(c->t))
		c->nan = false;
}

static bool can_update(tl_dtype t, int kind)
{
	bool sums = t == TL_I32 || t == TL_U32 || t == TL_U64 || t == TL_F16 || t == TL_BF16 || t == TL_F32;
	bool orders = t == TL_I32 || t == TL_U32 || t == TL_U64 || t == TL_I64 || t == TL_F16 || t == TL_BF16;
	return kind == 0 ? sums : kind < 3 ? orders : !is_float(t) && orders;
}

static void make_tensor(struct blocks *d, int class, int role, bool given)
{
	const struct block_class *c = &d->class[class];
	struct tensor *x = &d->tensor[d->ntensors++];
	int order[DIMS], aligned = 128 / bits_of(c->t);
	*x = (struct tensor){.class = class, .rank = c->rank, .role = role, .stated = {chance(30), chance(30)}};
	for (int k = 0; k < x->rank; k++) {
		int most = c->block[k] * 2 + c->block[k] / 2 + 2;
		x->shape[k] = c->rows && !k ? random_int(3, 2 * ROWS) : random_int(1, most);
		order[k] = x->rank - 1 - k;
	}
	bool regular = given || chance(60), turned = !given && chance(20);
	for (int k = x->rank - 1; turned && k > 0; k--) { /* of descriptors only the last dimension has the stride 1 */
		int e = random_below(k + 1), v = order[k];
		order[k] = order[e];
		order[e] = v;
	}
	int64_t span = 1;
	for (int k = 0; k < x->rank; k++) {
		int dim = order[k];
		x->stride[dim] = role == READ && !given && k && chance(6) ? random_below(2) * aligned : span;
		span = x->stride[dim] && x->stride[dim] * x->shape[dim] > span ? x->stride[dim] * x->shape[dim] : span;
		if (!regular && chance(30))
			span += random_below(5);
		if (regular)
			span = (span + aligned - 1) / aligned * aligned;
	}
	x->len = 1;
	for (int k = 0; k < x->rank; k++)
		x->len += x->stride[k] * (x->shape[k] - 1);
	x->skew = regular ? 0 : random_below(4);
	x->len += x->skew;
}

static bool describable(const struct blocks *d, const struct tensor *x)
{
	int bytes = bits_of(d->class[x->class].t) / 8;
	bool yes = x->skew == 0;
	for (int k = 0; k < x->rank - 1; k++)
		yes &= x->stride[k] > 0 && x->stride[k] * bytes % 16 == 0;
	return yes && x->stride[x->rank - 1] == 1;
}

static void make_handle(struct blocks *d, int tensor)
{
	const struct tensor *x = &d->tensor[tensor];
	const struct block_class *c = &d->class[x->class];
	struct handle *h = &d->handle[d->nhandles++];
	*h = (struct handle){.class = x->class, .tensor = tensor, .kind = POINTERS};
	if (x->stride[x->rank - 1] == 1 && (c->rows || x->role == UPDATED || chance(60)))
		h->kind = describable(d, x) && (x->role == READ || d->programs == 1) && chance(50) ? GIVEN : MADE;
	for (int k = 0; k < x->rank; k++)
		h->at[k] = random_int(chance(30) ? -c->block[k] : 0, x->shape[k] / 2);
}

static int new_tile(struct blocks *d, int class, int bound)
{
	const struct block_class *c = &d->class[class];
	d->tile[d->ntiles] = (struct tile){.class = class, .size = c->size * (c->rows ? ROWS : 1), .bound = bound};
	d->visible[d->nvisible++] = d->ntiles;
	return d->ntiles++;
}

static int some_tile(const struct blocks *d, int class)
{
	for (int tries = 0; tries < 8 && d->nvisible; tries++) {
		int v = d->visible[random_below(d->nvisible)];
		if (class < 0 || d->tile[v].class == class)
			return v;
	}
	return -1;
}

static struct block_step *new_step(struct blocks *d, enum step_kind kind)
{
	d->step[d->n] = (struct block_step){.kind = kind,
					    .to = -1,
					    .a = -1,
					    .b = -1,
					    .handle = -1,
					    .program = -1,
					    .opens = -1,
					    .loop = d->loop,
					    .also = random_below(1 << DIMS)};
	return &d->step[d->n++];
}

static void make_offsets(struct blocks *d, struct block_step *s, int class, bool relative)
{
	const struct block_class *c = &d->class[class];
	for (int k = 0; k < c->rank; k++) {
		s->by[k] = chance(40) ? 0 : random_int(-c->block[k] / (relative ? 1 : 4), c->block[k]);
		if (chance(30))
			s->by[k] = c->block[k];
		s->each[k] = d->loop >= 0 && chance(40) ? random_int(-1, c->block[k]) : 0;
	}
	s->program = !relative && chance(20) ? random_below(c->rank) : -1;
}

static bool may_use(const struct blocks *d, const struct handle *h, enum step_kind kind)
{
	int role = d->tensor[h->tensor].role;
	bool rows = d->class[h->class].rows;
	switch (kind) {
	case B_LOAD: return role != UPDATED && !rows && !(role == KEPT && d->dots);
	case B_GATHER: return role != UPDATED && rows && h->kind != POINTERS;
	case B_STORE: return role == KEPT && !rows && !(d->dots && d->loop >= 0);
	case B_SCATTER: return role == KEPT && rows && h->kind != POINTERS;
	case B_ATOMIC: return role == UPDATED && !rows && h->kind != POINTERS;
	case B_ADVANCE: return h->kind == POINTERS;
	default: return true;
	}
}

static int some_handle(const struct blocks *d, enum step_kind kind)
{
	for (int tries = 0; tries < 8; tries++) {
		int h = random_below(d->nhandles);
		if (may_use(d, &d->handle[h], kind))
			return h;
	}
	return -1;
}

static void make_access(struct blocks *d, enum step_kind kind)
{
	int h = some_handle(d, kind);
	if (h < 0 || d->ntiles > TILES - 4)
		return;
	const struct handle *x = &d->handle[h];
	int value = kind == B_LOAD || kind == B_GATHER ? -1 : some_tile(d, x->class), operation = random_below(6);
	if (kind == B_ATOMIC) {
		while (!can_update(d->class[x->class].t, operation))
			operation = random_below(6);
		/* one operation for a tensor: they commute with themselves only */
		for (int i = 0; i < d->n; i++)
			if (d->step[i].kind == B_ATOMIC && d->handle[d->step[i].handle].tensor == x->tensor)
				operation = d->step[i].form;
	}
	if (kind != B_LOAD && kind != B_GATHER && value < 0)
		return;
	if (kind == B_ATOMIC && (d->tile[value].may_nan || d->tile[value].bound > 3))
		return;
	struct block_step *s = new_step(d, kind);
	s->handle = h;
	s->a = value;
	s->form = kind == B_ATOMIC ? operation : random_below(4);
	make_offsets(d, s, x->class, false);
	if (value < 0) {
		s->to = new_tile(d, x->class, 3);
		d->tile[s->to].may_nan = is_float(d->class[x->class].t);
	}
}

/* Exchanges or copies handles of a class that have the same uses. */
static void make_exchange(struct blocks *d)
{
	int a = random_below(d->nhandles), b = random_below(d->nhandles);
	const struct handle *x = &d->handle[a], *y = &d->handle[b];
	if (a == b || x->class != y->class || (x->kind == POINTERS) != (y->kind == POINTERS) ||
	    d->tensor[x->tensor].role != READ || d->tensor[y->tensor].role != READ)
		return;
	struct block_step *s = new_step(d, chance(60) ? B_SWAP : B_COPY);
	s->to = a;
	s->a = b;
	s->form = random_below(3);
}

static void make_sum(struct blocks *d, enum step_kind kind)
{
	int a = some_tile(d, -1), b = a < 0 ? -1 : some_tile(d, d->tile[a].class);
	if (b < 0 || d->ntiles > TILES - 4 || is_fp8(d->class[d->tile[a].class].t))
		return;
	int bound = d->tile[a].bound + d->tile[b].bound;
	if (kind == B_ADD && bound <= 100) {
		struct block_step *s = new_step(d, B_ADD);
		s->a = a;
		s->b = b;
		s->to = new_tile(d, d->tile[a].class, bound);
		d->tile[s->to].may_nan = d->tile[a].may_nan | d->tile[b].may_nan;
	} else if (kind == B_SUM) {
		for (int v = 0; v < d->nclasses; v++)
			if (d->tile[v].class == d->tile[a].class && a != v &&
			    d->tile[v].bound + d->tile[a].bound * RUNS <= 200) {
				d->tile[v].bound += d->tile[a].bound * RUNS;
				d->tile[v].may_nan = true;
				struct block_step *s = new_step(d, B_SUM);
				s->to = v;
				s->a = a;
				return;
			}
	}
}

/* The class's product a·bᵀ is added to a sum of its own. */
static void add_product(struct blocks *d)
{
	int a = some_tile(d, -1), b = a < 0 ? -1 : some_tile(d, d->tile[a].class);
	if (b < 0 || !d->dots || d->loop < 0 || d->tile[a].bound > 3 || d->tile[b].bound > 3)
		return;
	struct block_step *s = new_step(d, B_DOT);
	s->a = a;
	s->b = b;
	s->to = d->nclasses + d->tile[a].class;
	s->form = random_below(2);
}

static void make_steps(struct blocks *d, int count);

static void add_block(struct blocks *d)
{
	int loop = d->loop, visible = d->nvisible, runs = d->runs, at = d->n, trips = (int)random_int(0, 4);
	if (d->depth == 3 || d->n > STEPS - 24 || (chance(60) && d->runs * 4 > RUNS))
		return;
	bool is_loop = d->runs * 4 <= RUNS && chance(65);
	struct block_step *s = new_step(d, is_loop ? B_FOR : B_IF);
	s->trips = trips;
	s->form = random_below(is_loop ? 5 : 2);
	d->depth++;
	if (is_loop) {
		d->loop = at;
		d->runs *= trips > 1 ? trips : 1;
	}
	make_steps(d, (int)random_int(2, 6));
	d->nvisible = visible;
	if (!is_loop && chance(50)) {
		new_step(d, B_ELSE)->opens = at;
		make_steps(d, (int)random_int(1, 4));
		d->nvisible = visible;
	}
	d->depth--;
	d->loop = loop;
	d->runs = runs;
	new_step(d, B_END)->opens = at;
}

static void make_steps(struct blocks *d, int count)
{
	for (; count > 0 && d->n < STEPS - 12; count--) {
		int what = random_below(100);
		if (what < 30)
			make_access(d, chance(85) ? B_LOAD : B_GATHER);
		else if (what < 45)
			make_access(d, chance(70) ? B_STORE : B_SCATTER);
		else if (what < 52)
			make_access(d, B_ATOMIC);
		else if (what < 60)
			make_sum(d, B_ADD);
		else if (what < 72)
			d->dots ? add_product(d) : make_sum(d, B_SUM);
		else if (what < 80)
			make_exchange(d);
		else if (what < 88)
			add_block(d);
		else {
			int h = some_handle(d, B_ADVANCE);
			if (h < 0)
				continue;
			struct block_step *s = new_step(d, B_ADVANCE);
			s->handle = h;
			s->form = random_below(4);
			make_offsets(d, s, d->handle[h].class, true);
		}
	}
}

static void make_blocks(struct blocks *d)
{
	memset(d, 0, sizeof *d);
	d->dots = chance(25);
	d->nclasses = (int)random_int(1, CLASSES);
	d->programs = (int)random_int(1, 2);
	d->warps = 1 << random_below(d->dots ? 2 : 4) << (d->dots ? 2 : 0);
	d->stages = (int)random_int(1, 4);
	d->loop = -1;
	d->runs = 1;
	for (int c = 0; c < d->nclasses; c++) {
		make_class(d, &d->class[c]);
		make_tensor(d, c, READ, chance(60));
		make_tensor(d, c, KEPT, chance(50));
		if (can_update(d->class[c].t, 0) && !d->class[c].rows)
			make_tensor(d, c, UPDATED, true);
	}
	for (int x = 0; x < d->ntensors; x++)
		make_handle(d, x);
	while (d->nhandles < HANDLES && chance(75))
		make_handle(d, random_below(d->ntensors));
	for (int v = 0; v < 2 * d->nclasses; v++) { /* sums of each class, and of products */
		int t = new_tile(d, v % d->nclasses, 0);
		const struct block_class *c = &d->class[v % d->nclasses];
		d->tile[t].carried = true;
		if (v >= d->nclasses) {
			d->nvisible--;
			d->tile[t].size = d->dots ? c->block[0] * c->block[0] : 0;
		}
	}
	make_steps(d, (int)random_int(2, 5));
	add_block(d);
	make_steps(d, (int)random_int(4, 10));
	d->loop = -1;
	for (int k = 0; k < 2; k++)
		make_access(d, B_STORE);
}

/* --- leaving out --------------------------------------------------------------------------------------------- */

static int end_of(const struct blocks *d, int k, enum step_kind kind)
{
	for (int i = k + 1; i < d->n; i++)
		if (d->step[i].kind == kind && d->step[i].opens == k)
			return i;
	return -1;
}

static void drop(struct blocks *d, const char *list)
{
	bool gone[TILES] = {false};
	for (const char *s = list + strspn(list, ","); *s; s += strcspn(s, ","), s += strspn(s, ",")) {
		int k = atoi(s);
		if (k >= d->n || d->step[k].kind == B_END || d->step[k].kind == B_ELSE)
			continue;
		for (int i = k; i <= (d->step[k].kind == B_FOR || d->step[k].kind == B_IF ? end_of(d, k, B_END) : k);
		     i++)
			d->step[i].dead = true;
	}
	for (int i = 0; i < d->n; i++) {
		struct block_step *s = &d->step[i];
		if (s->kind == B_SWAP || s->kind == B_COPY)
			continue;
		s->dead |= (s->a >= 0 && gone[s->a]) || (s->b >= 0 && gone[s->b]);
		if (s->dead && s->to >= 0 && !d->tile[s->to].carried)
			gone[s->to] = true;
	}
}

/* --- evaluation ---------------------------------------------------------------------------------------------- */

static int64_t plus(tl_dtype t, int64_t a, int64_t b)
{
	if (is_float(t))
		return a == nan_mark || b == nan_mark ? nan_mark : a + b;
	return wrap(t, (int64_t)((uint64_t)a + (uint64_t)b));
}

/* Element e of the block at the offsets; -1 outside, where the dimensions are noted. */
static int64_t element(struct blocks *d, struct block_step *s, const struct tensor *x, const int64_t *offset, int e)
{
	const struct block_class *c = &d->class[x->class];
	int64_t at = x->skew;
	bool inside = true;
	for (int k = c->rank - 1; k >= 0; k--) {
		int n = c->rows && !k ? ROWS : c->block[k];
		int64_t i = c->rows && !k ? d->row[s->kind == B_SCATTER ? ROWS + e : e] : offset[k] + e % n;
		e /= n;
		if (i < 0 || i >= x->shape[k]) {
			s->outside |= 1 << k;
			inside = false;
		}
		at += i * x->stride[k];
	}
	return !inside ? -1 : at + (x->role == KEPT ? d->pid * x->len : 0);
}

static void access(struct blocks *d, struct block_step *s)
{
	struct handle *h = &d->handle[s->handle];
	struct tensor *x = &d->tensor[h->now];
	const struct block_class *c = &d->class[h->class];
	struct tile *v = &d->tile[s->to >= 0 ? s->to : s->a];
	int64_t offset[DIMS];
	bool nan = h->kind == POINTERS ? s->form == 3 && is_float(c->t) : c->nan;
	for (int k = 0; k < c->rank; k++)
		offset[k] = h->kind == POINTERS ? h->place[k]
						: s->by[k] + s->each[k] * (s->loop < 0 ? 0 : d->index[s->loop]) +
							  (s->program == k && !c->rows ? d->pid : 0);
	if (c->rows)
		offset[1] = s->by[1];
	for (int e = 0; e < v->size; e++) {
		int64_t at = element(d, s, x, offset, e), y = v->at[e];
		if (s->to >= 0) {
			v->at[e] = at >= 0 ? x->now[at] : nan ? nan_mark : 0;
			continue;
		}
		if (at < 0)
			continue;
		if (v->bound > 3 && is_float(c->t))
			y = y == nan_mark || y < -3 ? -3 : y > 3 ? 3 : y;
		x->touched[at] = 1;
		if (s->kind != B_ATOMIC)
			x->now[at] = y;
		else if (is_float(c->t))
			x->now[at] = s->form == 0                         ? x->now[at] + y
				     : (s->form == 1) == (y > x->now[at]) ? y
									  : x->now[at];
		else
			x->now[at] = update(s->form, c->t, x->now[at], y);
	}
}

static void multiply(struct blocks *d, const struct block_step *s)
{
	const struct tile *a = &d->tile[s->a], *b = &d->tile[s->b], *to = &d->tile[s->to];
	int m = d->class[a->class].block[0], n = d->class[a->class].block[1];
	tl_dtype t = d->class[a->class].t == TL_I8 ? TL_I32 : TL_F32;
	for (int i = 0; i < m; i++)
		for (int j = 0; j < m; j++)
			for (int k = 0; k < n; k++) {
				int64_t x = a->at[i * n + k], y = b->at[j * n + k];
				to->at[i * m + j] =
					plus(t, to->at[i * m + j],
					     is_float(t) && (x == nan_mark || y == nan_mark) ? nan_mark : x * y);
			}
}

static void run(struct blocks *d, int from, int to)
{
	for (int k = from; k < to; k++) {
		struct block_step *s = &d->step[k];
		struct tile *v = s->to < 0 ? NULL : &d->tile[s->to];
		if (s->dead)
			continue;
		switch (s->kind) {
		case B_FOR:
			for (d->index[k] = 0; d->index[k] < s->trips; d->index[k]++)
				run(d, k + 1, end_of(d, k, B_END));
			k = end_of(d, k, B_END);
			break;
		case B_IF: {
			int end = end_of(d, k, B_END), other = end_of(d, k, B_ELSE);
			if ((s->loop >= 0 ? d->index[s->loop] : d->pid) % 2 == s->form)
				run(d, k + 1, other < 0 ? end : other);
			else if (other >= 0)
				run(d, other + 1, end);
			k = end;
			break;
		}
		case B_ADD:
		case B_SUM:
			for (int e = 0; e < v->size; e++)
				v->at[e] = plus(d->class[v->class].t, d->tile[s->kind == B_ADD ? s->b : s->to].at[e],
						d->tile[s->a].at[e]);
			break;
		case B_DOT: multiply(d, s); break;
		case B_ADVANCE:
			for (int i = 0; i < DIMS; i++)
				d->handle[s->handle].place[i] +=
					s->by[i] + s->each[i] * (s->loop < 0 ? 0 : d->index[s->loop]);
			break;
		case B_SWAP:
		case B_COPY: {
			struct handle *x = &d->handle[s->to], *y = &d->handle[s->a], old = *x;
			x->now = y->now;
			memcpy(x->place, y->place, sizeof x->place);
			if (s->kind == B_SWAP) {
				y->now = old.now;
				memcpy(y->place, old.place, sizeof y->place);
			}
			break;
		}
		case B_ELSE:
		case B_END: break;
		default: access(d, s);
		}
	}
}

static void evaluate_blocks(struct blocks *d, struct array *const *products)
{
	for (d->pid = 0; d->pid < d->programs; d->pid++) {
		for (int h = 0; h < d->nhandles; h++) {
			d->handle[h].now = d->handle[h].tensor;
			memcpy(d->handle[h].place, d->handle[h].at, sizeof d->handle[h].at);
		}
		for (int v = 0; v < 2 * d->nclasses; v++)
			memset(d->tile[v].at, 0, (size_t)d->tile[v].size * sizeof *d->tile[v].at);
		run(d, 0, d->n);
		for (int c = 0; c < d->nclasses && d->dots; c++)
			for (int e = 0; e < d->tile[d->nclasses + c].size; e++) {
				int64_t y = d->tile[d->nclasses + c].at[e];
				size_t at = (size_t)(d->pid * d->tile[d->nclasses + c].size + e);
				if (is_float(products[c]->dtype))
					want_number(products[c], at, y == nan_mark ? NAN : (double)y);
				else
					want_int(products[c], at, y);
			}
	}
}

/* --- a case -------------------------------------------------------------------------------------------------- */

static void create_tensor(struct suite *s, struct blocks *d, int k)
{
	static char names[TENSORS][16];
	struct tensor *x = &d->tensor[k];
	tl_dtype t = d->class[x->class].t;
	size_t len = (size_t)(x->len * (x->role == KEPT ? d->programs : 1));
	snprintf(names[k], sizeof *names, "p%d", k);
	x->array = x->role == READ ? in(s, names[k], t, len) : inout(s, names[k], t, len);
	x->now = calloc(len, sizeof *x->now);
	x->touched = calloc(len, 1);
	for (size_t i = 0; i < len; i++) {
		x->now[i] = random_int(-3, 3);
		if (is_float(t)) {
			set(x->array, i, (double)x->now[i]);
		} else {
			x->now[i] = wrap(t, x->now[i]);
			set_int(x->array, i, x->now[i]);
		}
	}
}

static void expect(struct tensor *x)
{
	for (size_t i = 0; i < x->array->len && x->role != READ; i++) {
		if (!x->touched[i])
			continue;
		if (is_float(x->array->dtype))
			want_number(x->array, i, x->now[i] == nan_mark ? NAN : (double)x->now[i]);
		else
			want_int(x->array, i, x->now[i]);
	}
	free(x->now);
	free(x->touched);
}

static size_t arguments(struct blocks *d, struct array *const *products, tl_arg *args, tl_descriptor *descriptors)
{
	size_t n = 0;
	for (int k = 0; k < d->ntensors; k++) {
		args[n++] = ptr(d->tensor[k].array);
		for (int i = 0; i < d->tensor[k].rank; i++) {
			args[n++] = tl_int(d->tensor[k].shape[i]);
			args[n++] = tl_int(d->tensor[k].stride[i]);
		}
	}
	for (int h = 0; h < d->nhandles; h++) {
		const struct tensor *x = &d->tensor[d->handle[h].tensor];
		const struct block_class *c = &d->class[x->class];
		if (d->handle[h].kind != GIVEN)
			continue;
		descriptors[h] = tl_describe(c->t, address(x->array), x->rank, x->shape, c->block);
		memcpy(descriptors[h].strides, x->stride, (size_t)x->rank * sizeof *x->stride);
		descriptors[h].pads_with_nan = c->nan;
		args[n++] = tl_desc(&descriptors[h]);
	}
	for (int k = 0; k < d->n; k++)
		if (d->step[k].kind == B_FOR)
			args[n++] = tl_int(d->step[k].trips);
	for (int c = 0; c < d->nclasses && d->dots; c++)
		args[n++] = ptr(products[c]);
	args[n++] = ptr(d->rows);
	return n;
}

static void blocks_case(struct suite *s, int64_t seed, const char *left_out)
{
	static const char *const names[] = {"q0", "q1"};
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct blocks *d = calloc(1, sizeof *d);
	struct array *products[CLASSES] = {NULL};
	tl_descriptor descriptors[HANDLES];
	tl_arg args[TENSORS * (2 * DIMS + 1) + HANDLES + STEPS + CLASSES + 1];
	random_seed((uint64_t)seed);
	make_blocks(d);
	if (left_out)
		drop(d, left_out);
	for (int k = 0; k < d->ntensors; k++)
		create_tensor(s, d, k);
	for (int v = 0; v < d->ntiles; v++)
		d->tile[v].at = calloc((size_t)d->tile[v].size + 1, sizeof *d->tile[v].at);
	d->rows = inout(s, "rows", TL_I32, (size_t)(2 * ROWS));
	for (int i = 0; i < 2 * ROWS; i++) /* those of scatters are different */
		set_int(d->rows, (size_t)i, d->row[i] = i < ROWS ? random_int(-2, 2 * ROWS) : (i * 5 + 3) % 16);
	for (int c = 0; c < d->nclasses && d->dots; c++)
		products[c] = out(s, names[c], d->class[c].t == TL_I8 ? TL_I32 : TL_F32,
				  (size_t)(d->programs * d->tile[d->nclasses + c].size));
	evaluate_blocks(d, products);
	for (int k = 0; k < d->ntensors; k++)
		expect(&d->tensor[k]);
	char *text = blocks_text(d);
	tl_config config = {.grid = {(uint32_t)d->programs}, .num_warps = d->warps, .num_stages = d->stages};
	run_text(s, text, &config, args, arguments(d, products, args, descriptors), "programs %d", d->programs);
	for (int v = 0; v < d->ntiles; v++)
		free(d->tile[v].at);
	free(d);
}

void theme_random_blocks(struct suite *s)
{
	each_seed(s, "blocks", 100, blocks_case);
}

int shrink_blocks(const char *command)
{
	return shrink_list(command, STEPS);
}

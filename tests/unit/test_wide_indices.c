/* Indices that do not fit 32 bits: random kernels whose index is an expression of sizes, program ids, ranges and
 * indices of loops, launched with sizes around 2^31, against the expression in whole numbers. A quotient or remainder
 * brings the index back into a small buffer, so that a wrap shows. */
#include <limits.h>

#include "test_runtime.h"

#include "random_bits.h"

enum { MEMORY = 64, BLOCK = 16, PROGRAMS = 4, DEPTH = 4, SIZES = 3 };

static u32 below(u32 n)
{
	return (u32)(random_bits() % n);
}

/* --- expressions --------------------------------------------------------------------------------------------- */

struct node {
	char op; /* + - * / % < > of a and b; s size, p program id, r range, k index of a loop, c constant */
	i64 n;
	const struct node *a, *b;
};

static struct node pool[256];
static u32 used;

static const struct node *make(char op, i64 n, const struct node *a, const struct node *b)
{
	pool[used] = (struct node){op, n, a, b};
	return &pool[used++];
}

static const struct node *random_node(int depth)
{
	static const char leaves[] = "sssprkc", inner[] = "+-***/%<>";
	if (!depth || below(6) == 0) {
		char op = leaves[below(sizeof leaves - 1)];
		return make(op, op == 's' ? below(SIZES) : 1 + below(40), NULL, NULL);
	}
	char op = inner[below(sizeof inner - 1)];
	const struct node *a = random_node(depth - 1);
	bool by_constant = op == '/' || op == '%';
	return make(op, 0, a, by_constant ? make('c', 1 + below(1000), NULL, NULL) : random_node(depth - 1));
}

struct point {
	i64 size[SIZES];
	i64 program, range, loop;
};

/* *fits: no sum, difference or product on the way is outside 32 bits. */
static i128 value_of(const struct node *x, const struct point *at, bool *fits)
{
	switch (x->op) {
	case 's': return at->size[x->n];
	case 'p': return at->program;
	case 'r': return at->range;
	case 'k': return at->loop;
	case 'c': return x->n;
	default: break;
	}
	i128 a = value_of(x->a, at, fits), b = value_of(x->b, at, fits), r;
	switch (x->op) {
	case '+': r = a + b; break;
	case '-': r = a - b; break;
	case '*': r = a * b; break;
	case '/': return a / b;
	case '%': return a % b;
	case '<': return MIN(a, b);
	default: return MAX(a, b);
	}
	*fits &= r >= INT32_MIN && r <= INT32_MAX;
	return r;
}

/* No more than this in magnitude, with sizes of that. */
static double magnitude(const struct node *x, double sizes, double *most)
{
	double a = x->a ? magnitude(x->a, sizes, most) : 0, b = x->b ? magnitude(x->b, sizes, most) : 0, r;
	switch (x->op) {
	case 's':
	case 'p': return sizes;
	case 'r': return BLOCK;
	case 'k': return 3 * sizes;
	case 'c': return (double)x->n;
	case '+':
	case '-': r = a + b; break;
	case '*': r = a * b; break;
	case '/': return a;
	case '%': return MIN(a, b);
	default: return MAX(a, b);
	}
	*most = MAX(*most, r);
	return r;
}

static void print(const struct node *x, struct strbuf *out)
{
	static const char *const names[] = {"m", "n", "s"};
	switch (x->op) {
	case 's': sb_puts(out, names[x->n]); return;
	case 'p': sb_puts(out, "pid"); return;
	case 'r': sb_puts(out, "i"); return;
	case 'k': sb_puts(out, "k"); return;
	case 'c': sb_printf(out, "%lld", (long long)x->n); return;
	default: break;
	}
	bool call = x->op == '<' || x->op == '>';
	sb_puts(out, x->op == '<' ? "tl.minimum(" : x->op == '>' ? "tl.maximum(" : "(");
	print(x->a, out);
	sb_puts(out, call ? ", " : x->op == '/' ? " // " : arena_printf(out->arena, " %c ", x->op));
	print(x->b, out);
	sb_puts(out, ")");
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

static const char *kernel_of(struct arena *a, const struct node *index, const struct node *bound)
{
	struct strbuf out = {.arena = a};
	sb_puts(&out,
		"import triton\nimport triton.language as tl\n\n@triton.jit\n"
		"def f(x, out, m, n, s, BLOCK: tl.constexpr):\n"
		"    pid = tl.program_id(0)\n    i = tl.arange(0, BLOCK)\n    total = tl.zeros([BLOCK], tl.int32)\n"
		"    for k in range(m * 2, m * 2 + 3):\n        e = ");
	print(index, &out);
	sb_puts(&out, " + i * 0\n        b = ");
	print(bound, &out);
	sb_puts(&out, " + i * 0\n"
		      "        total += tl.load(x + (e % 64 + 64) % 64, mask=e < b, other=1000)\n"
		      "    tl.store(out + pid * BLOCK + i, total)\n");
	return out.at;
}

static i32 expected(const struct node *index, const struct node *bound, struct point at, const i32 *x, bool *fits)
{
	i32 total = 0;
	for (i64 k = 0; k < 3; k++) {
		at.loop = at.size[0] * 2 + k;
		i128 e = value_of(index, &at, fits), b = value_of(bound, &at, fits);
		total += e < b ? x[(e % 64 + 64) % 64] : 1000;
	}
	*fits &= at.size[0] * 2 + 3 <= INT32_MAX && at.size[0] * 2 >= INT32_MIN;
	return total;
}

static i64 random_size(void)
{
	i64 v = (i64)(random_bits() >> (34 + below(below(2) ? 30 : 4))); /* up to 30 bits */
	return below(4) ? v : -v;
}

static u32 wide, launches;

static void check(const char *device, const char *text, const struct node *index, const struct node *bound)
{
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	tl_buffer *x, *out;
	i32 in[MEMORY], got[PROGRAMS * BLOCK];
	for (int i = 0; i < MEMORY; i++)
		in[i] = (i32)below(1000000);
	assert_int_equal(tl_context_create(device, &ctx), TL_OK);
	if (tl_module_load_source(ctx, "t.tl", text, strlen(text), &m) || tl_module_kernel(m, "f", &k))
		fail_msg("%s\n%s", text, tl_error(NULL));
	assert_int_equal(tl_buffer_create(ctx, sizeof in, &x), TL_OK);
	assert_int_equal(tl_buffer_create(ctx, sizeof got, &out), TL_OK);
	assert_int_equal(tl_buffer_write(x, 0, in, sizeof in), TL_OK);
	for (int n = 0; n < 6; n++) {
		struct point at = {.size = {random_size(), random_size(), random_size()}};
		if (tl_launch(k, &(tl_config){.grid = {PROGRAMS}, .num_warps = 1},
			      ARGS(tl_buf(TL_I32, x), tl_buf(TL_I32, out), tl_int(at.size[0]), tl_int(at.size[1]),
				   tl_int(at.size[2]), tl_int(BLOCK))) ||
		    tl_buffer_read(out, 0, got, sizeof got))
			fail_msg("%s\n%s", text, tl_error(NULL));
		bool fits = true;
		for (int e = 0; e < PROGRAMS * BLOCK; e++) {
			at.program = e / BLOCK;
			at.range = e % BLOCK;
			i32 want = expected(index, bound, at, in, &fits);
			if (got[e] != want)
				fail_msg("%s: m=%lld n=%lld s=%lld: element %d is %d, must be %d\n%s", device,
					 (long long)at.size[0], (long long)at.size[1], (long long)at.size[2], e, got[e],
					 want, text);
		}
		launches++;
		wide += !fits;
	}
	tl_context_destroy(ctx);
}

static void random_indices(void **state)
{
	(void)state;
	struct arena a = {0};
	for (int n = 0; n < 60;) {
		used = 0;
		const struct node *index = random_node(DEPTH), *bound = random_node(2);
		double few = 0, many = 0;
		magnitude(index, 128, &few);
		magnitude(bound, 128, &few);
		magnitude(index, 1 << 30, &many);
		magnitude(bound, 1 << 30, &many);
		if (few >= INT32_MAX / 2 || many >= 0x1p61) /* meant to wrap; beyond 64 bits */
			continue;
		const char *text = kernel_of(&a, index, bound);
		check("interp", text, index, bound);
		check("sim", text, index, bound);
		n++;
	}
	print_message("%u launches, %u with indices beyond 32 bits\n", launches, wide);
	assert_true(wide > launches / 8 && wide < launches * 4 / 5);
	arena_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_indices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

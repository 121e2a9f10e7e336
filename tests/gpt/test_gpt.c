/* test_gpt DEVICE: the loss and the gradients of every parameter of examples/gpt, against reverse-mode differentiation
 * of the same model in double precision, operation by operation; and the tokens it generates, against the same model's
 * probabilities. Ends in "N passed, N failed". */
#include "examples/gpt/gpt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- differentiation ----------------------------------------------------------------------------------------- */

typedef uint32_t var; /* a node of the tape; 0 is the constant 0 */

struct node {
	double value, slope; /* slope: of the result by this node */
	double partial[3];
	var from[3];
};

static struct node *tape;
static var used, room;

static var node(double value, var a, double da, var b, double db, var c, double dc)
{
	if (used == room) {
		room = room ? 2 * room : 1 << 20;
		tape = realloc(tape, room * sizeof *tape);
		if (!tape)
			die("out of memory");
	}
	tape[used] = (struct node){value, 0, {da, db, dc}, {a, b, c}};
	return used++;
}

static double at(var x)
{
	return tape[x].value;
}
static var constant(double x)
{
	return node(x, 0, 0, 0, 0, 0, 0);
}
static var add(var a, var b)
{
	return node(at(a) + at(b), a, 1, b, 1, 0, 0);
}
static var sub(var a, var b)
{
	return node(at(a) - at(b), a, 1, b, -1, 0, 0);
}
static var mul(var a, var b)
{
	return node(at(a) * at(b), a, at(b), b, at(a), 0, 0);
}
static var over(var a, var b)
{
	return node(at(a) / at(b), a, 1 / at(b), b, -at(a) / (at(b) * at(b)), 0, 0);
}
static var fma_(var sum, var a, var b)
{
	return node(at(sum) + at(a) * at(b), sum, 1, a, at(b), b, at(a));
}
static var scaled(var a, double s)
{
	return node(at(a) * s, a, s, 0, 0, 0, 0);
}
static var root(var a)
{
	return node(sqrt(at(a)), a, 0.5 / sqrt(at(a)), 0, 0, 0, 0);
}
static var exp_(var a)
{
	return node(exp(at(a)), a, exp(at(a)), 0, 0, 0, 0);
}
static var log_(var a)
{
	return node(log(at(a)), a, 1 / at(a), 0, 0, 0, 0);
}
static var tanh_(var a)
{
	return node(tanh(at(a)), a, 1 - tanh(at(a)) * tanh(at(a)), 0, 0, 0, 0);
}

/* The slopes of everything that `result` depends on, which is at the end of the tape. */
static void differentiate(var result)
{
	tape[result].slope = 1;
	for (var i = result; i; i--)
		for (int k = 0; k < 3; k++)
			tape[tape[i].from[k]].slope += tape[i].slope * tape[i].partial[k];
}

/* --- the model ----------------------------------------------------------------------------------------------- */

enum { ROWS = 64, WIDE = 512 };

static var parameter[PARAMETERS + 8 * LAYER_PARAMETERS]; /* the first node of each */

static void norm(var *out, const var *x, int n, var weight, var bias)
{
	var mean = 0, variance = 0;
	for (int i = 0; i < n; i++)
		mean = add(mean, x[i]);
	mean = scaled(mean, 1.0 / n);
	for (int i = 0; i < n; i++) {
		out[i] = sub(x[i], mean);
		variance = fma_(variance, out[i], out[i]);
	}
	var deviation = root(add(scaled(variance, 1.0 / n), constant(1e-5)));
	for (int i = 0; i < n; i++)
		out[i] = fma_(bias + (var)i, over(out[i], deviation), weight + (var)i);
}

static void linear(var *out, const var *x, int k, int n, var weight, var bias)
{
	for (int j = 0; j < n; j++) {
		out[j] = bias + (var)j;
		for (int i = 0; i < k; i++)
			out[j] = fma_(out[j], x[i], weight + (var)(i * n + j));
	}
}

static var gelu(var x)
{
	var z = scaled(fma_(x, scaled(mul(x, x), 0.044715), x), sqrt(2 / M_PI));
	return scaled(mul(x, add(constant(1), tanh_(z))), 0.5);
}

static void attend(var (*out)[WIDE], var (*qkv)[WIDE], int length, int c, int heads)
{
	int d = c / heads;
	for (int h = 0; h < heads; h++) {
		for (int i = 0; i < length; i++) {
			var p[ROWS], total = 0;
			for (int j = 0; j <= i; j++) {
				var s = 0;
				for (int k = h * d; k < (h + 1) * d; k++)
					s = fma_(s, qkv[i][k], qkv[j][c + k]);
				p[j] = exp_(scaled(s, 1 / sqrt(d)));
				total = add(total, p[j]);
			}
			for (int k = h * d; k < (h + 1) * d; k++) {
				var sum = 0;
				for (int j = 0; j <= i; j++)
					sum = fma_(sum, p[j], qkv[j][2 * c + k]);
				out[i][k] = over(sum, total);
			}
		}
	}
}

static double scores[ROWS][WIDE]; /* logits of the last sequence */

static var sequence_loss(const struct config *c, const uint32_t *tokens, const uint32_t *targets, int length)
{
	static var x[ROWS][WIDE], y[ROWS][WIDE], wide[ROWS][WIDE];
	int n = c->channels;
	const var *last = parameter + (c->layers - 1) * LAYER_PARAMETERS;
	for (int t = 0; t < length; t++)
		for (int i = 0; i < n; i++)
			x[t][i] = add(last[TOKEN_WEIGHT] + (var)tokens[t] * (var)n + (var)i,
				      last[POSITION_WEIGHT] + (var)(t * n + i));
	for (int l = 0; l < c->layers; l++) {
		const var *p = parameter + l * LAYER_PARAMETERS;
		for (int t = 0; t < length; t++) {
			norm(y[t], x[t], n, p[LN1_WEIGHT], p[LN1_BIAS]);
			linear(wide[t], y[t], n, 3 * n, p[QKV_WEIGHT], p[QKV_BIAS]);
		}
		attend(y, wide, length, n, c->heads);
		for (int t = 0; t < length; t++) {
			var out[WIDE];
			linear(out, y[t], n, n, p[OUT_WEIGHT], p[OUT_BIAS]);
			for (int i = 0; i < n; i++)
				x[t][i] = add(x[t][i], out[i]);
			norm(y[t], x[t], n, p[LN2_WEIGHT], p[LN2_BIAS]);
			linear(wide[t], y[t], n, 4 * n, p[UP_WEIGHT], p[UP_BIAS]);
			for (int i = 0; i < 4 * n; i++)
				wide[t][i] = gelu(wide[t][i]);
			linear(out, wide[t], 4 * n, n, p[DOWN_WEIGHT], p[DOWN_BIAS]);
			for (int i = 0; i < n; i++)
				x[t][i] = add(x[t][i], out[i]);
		}
	}
	var loss = 0;
	for (int t = 0; t < length; t++) {
		norm(y[t], x[t], n, last[LN_WEIGHT], last[LN_BIAS]);
		var total = 0, chosen = 0;
		for (int v = 0; v < c->vocabulary; v++) {
			var s = 0;
			for (int i = 0; i < n; i++)
				s = fma_(s, y[t][i], last[TOKEN_WEIGHT] + (var)(v * n + i));
			scores[t][v] = at(s);
			total = add(total, exp_(s));
			if (v == (int)targets[t])
				chosen = s;
		}
		loss = add(loss, sub(log_(total), chosen));
	}
	return loss;
}

/* --- comparison ---------------------------------------------------------------------------------------------- */

static int passed, failed;

static void verdict(bool right, const char *what, const char *name, double error, double allowed)
{
	if (right) {
		passed++;
		return;
	}
	failed++;
	printf("%s %s: relative error %.3g, allowed %.3g\n", what, name, error, allowed);
}

static double rounded(double x, tl_dtype type)
{
	float f = (float)x;
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	if (type == TL_BF16)
		u = (u + 0x7FFF + (u >> 16 & 1)) & 0xFFFF0000;
	memcpy(&f, &u, sizeof f);
	return f;
}

/* The model's weights, and the tape's first nodes. */
static void random_parameters(struct gpt *g, float *w, uint64_t *random)
{
	used = 0;
	constant(0);
	for (int i = 0; i < g->nplaces; i++) {
		const struct place *p = &g->places[i];
		parameter[i] = used;
		for (size_t k = 0; k < p->len; k++) {
			double u = (double)(next_random(random) >> 11) * 0x1p-53;
			double scale = p->rank == 2 ? 2 / sqrt(p->shape[0]) : 1;
			if (strstr(p->name, "wte") || strstr(p->name, "wpe"))
				scale = 0.5;
			u = (u - 0.5) * scale + (strstr(p->name, "ln_") && strstr(p->name, "weight"));
			w[p->first + k] = (float)rounded(u, g->type);
			constant(w[p->first + k]);
		}
	}
	gpt_set_weights(g, w);
}

/* `twice`: as two micro-batches of one half each, whose gradients add up. */
static void test(const char *device, struct config c, tl_dtype type, int batch, int length, bool twice)
{
	char what[100];
	snprintf(what, sizeof what, "%d x %d tokens of %d, %d channels, %d heads, %d layers, %s%s", batch, length,
		 c.vocabulary, c.channels, c.heads, c.layers, tl_dtype_name(type), twice ? ", in two halves" : "");
	struct gpt g;
	uint64_t random = 1;
	gpt_create(&g, device, "examples/gpt/gpt.tl", &c, type, batch, length, true);
	float *w = calloc(g.size, sizeof *w), *gradients = calloc(g.size, sizeof *gradients);
	uint32_t *tokens = calloc((size_t)(2 * batch * length), sizeof *tokens), *targets = tokens + batch * length;
	if (!w || !gradients || !tokens)
		die("out of memory");
	for (int i = 0; i < 2 * batch * length; i++)
		tokens[i] = (uint32_t)(next_random(&random) % (uint64_t)c.vocabulary);
	random_parameters(&g, w, &random);
	var loss = 0;
	for (int b = 0; b < batch; b++)
		loss = add(loss, sequence_loss(&c, tokens + b * length, targets + b * length, length));
	loss = scaled(loss, 1.0 / (batch * length));
	differentiate(loss);

	must(tl_buffer_fill(g.gradients, 0xFF)); /* NaN: what is not replaced shows */
	double got;
	if (twice) {
		int half = batch / 2;
		got = gpt_loss(&g, tokens, targets, half, length, 0.5, false, NULL, NULL);
		got += gpt_loss(&g, tokens + half * length, targets + half * length, half, length, 0.5, true, NULL,
				NULL);
		got /= 2;
	} else {
		got = gpt_loss(&g, tokens, targets, batch, length, 1, false, NULL, NULL);
	}
	gpt_get(&g, g.gradients, gradients);
	double allowed = type == TL_F32 ? 1e-5 : 4e-2, error = fabs(got - at(loss)) / at(loss);
	verdict(error <= allowed / 4, what, "loss", error, allowed / 4);
	for (int i = 0; i < g.nplaces; i++) {
		const struct place *p = &g.places[i];
		double norm = 0, worst = 0;
		for (size_t k = 0; k < p->len; k++) {
			double want = tape[parameter[i] + k].slope, off = fabs(gradients[p->first + k] - want);
			norm += want * want;
			worst = off <= worst ? worst : off; /* NaN is the worst */
		}
		/* keys' biases have no effect: all scores of a query grow alike, so that their gradients are 0 */
		error = worst / sqrt(norm / (double)p->len);
		verdict(error <= 4 * allowed, what, p->name, error, 4 * allowed);
	}
	free(w);
	free(gradients);
	free(tokens);
	gpt_destroy(&g);
}

/* Tokens by the cache of keys and values, behind a prompt, against probabilities without one. */
static void test_generation(const char *device, tl_dtype type, int draws)
{
	enum { PROMPT = 7, LENGTH = 20, TOP = 5 };
	const struct config c = {61, LENGTH, 48, 3, 2};
	struct gpt g;
	uint64_t random = 3;
	uint32_t tokens[LENGTH + 1] = {0};
	char what[64];
	snprintf(what, sizeof what, "generation, %s", tl_dtype_name(type));
	gpt_create(&g, device, "examples/gpt/gpt.tl", &c, type, 1, LENGTH, false);
	float *w = calloc(g.size, sizeof *w);
	if (!w)
		die("out of memory");
	random_parameters(&g, w, &random);
	for (int i = 0; i < PROMPT; i++)
		tokens[i] = (uint32_t)(next_random(&random) % (uint64_t)c.vocabulary);
	gpt_prefill(&g, tokens, PROMPT - 1);
	gpt_put(&g, tokens[PROMPT - 1], PROMPT - 1, 0);
	for (int i = PROMPT; i <= LENGTH; i++)
		tokens[i] = gpt_step(&g, 0, 0, 1);
	sequence_loss(&c, tokens, tokens, LENGTH);
	double allowed = type == TL_F32 ? 1e-5 : 0.1;
	for (int i = PROMPT; i <= LENGTH; i++) {
		double most = -INFINITY;
		for (int v = 0; v < c.vocabulary; v++)
			most = fmax(most, scores[i - 1][v]);
		double off = most - scores[i - 1][tokens[i] % WIDE];
		verdict(tokens[i] < (uint32_t)c.vocabulary && off <= allowed, what, "the likeliest token", off,
			allowed);
	}

	if (!draws)
		goto end;
	/* draws at the last position: how often each token comes, by Pearson's test; of the likeliest, no others */
	int count[WIDE] = {0}, top[WIDE] = {0};
	for (int i = 0; i < draws; i++) {
		gpt_put(&g, tokens[LENGTH - 1], LENGTH - 1, i);
		count[gpt_step(&g, 0.5, 0, 1) % WIDE]++;
		if (i < 100) {
			gpt_put(&g, tokens[LENGTH - 1], LENGTH - 1, i);
			top[gpt_step(&g, 5, TOP, 1) % WIDE]++;
		}
	}
	double total = 0, chi = 0, rest = 0;
	int others = 0, drawn = 0, classes = 0, rare = 0;
	for (int v = 0; v < c.vocabulary; v++)
		total += exp(2 * scores[LENGTH - 1][v]);
	for (int v = 0; v < c.vocabulary; v++) {
		double expected = draws * exp(2 * scores[LENGTH - 1][v]) / total;
		if (expected >= 5) {
			chi += pow(count[v] - expected, 2) / expected;
			classes++;
		} else {
			rest += expected;
			rare += count[v];
		}
		int better = 0;
		for (int u = 0; u < c.vocabulary; u++)
			better += scores[LENGTH - 1][u] > scores[LENGTH - 1][v] + allowed;
		others += better >= TOP ? top[v] : 0;
		drawn += top[v] > 0;
	}
	if (rest > 0)
		chi += pow(rare - rest, 2) / rest;
	/* the mean of chi is the number of classes, its variance twice that: five deviations */
	double most = classes + 5 * sqrt(2.0 * classes);
	verdict(chi <= (type == TL_F32 ? most : 4 * most) && classes > 3, what, "frequencies (chi squared)", chi, most);
	verdict(!others && drawn == TOP, what, "draws from others than the likeliest", others, 0);
end:
	free(w);
	gpt_destroy(&g);
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : NULL;
	bool slow = device && !strncmp(device, "sim", 3);
	test(device, (struct config){61, 24, 48, 3, 2}, TL_F32, 2, 20, true);
	test(device, (struct config){61, 24, 32, 2, 1}, TL_BF16, 2, 16, false);
	if (!slow) {
		test(device, (struct config){300, 40, 64, 2, 3}, TL_F32, 2, 37, false);
		test(device, (struct config){100, 40, 128, 2, 1}, TL_BF16, 2, 33, true);
	}
	test_generation(device, TL_F32, slow ? 0 : 1500);
	test_generation(device, TL_BF16, slow ? 0 : 1500);
	free(tape);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}

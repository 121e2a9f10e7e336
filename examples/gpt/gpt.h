/* A GPT-2 style transformer on libtl: model.c computes, files.c keeps weights, tokenizer.c reads text, sample.c
 * generates, gpt.c is the program. */
#ifndef GPT_H
#define GPT_H

#include <tl.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Ends the program with status 2 and a message on standard error. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with libtl's message, if the call failed. */
void must(tl_status s);

/* --- the model ----------------------------------------------------------------------------------------------- */

struct config {
	int vocabulary, context, channels, heads, layers;
};

/* Parameters of a layer, and behind them those that there is one of. */
enum parameter {
	LN1_WEIGHT,
	LN1_BIAS,
	QKV_WEIGHT,
	QKV_BIAS,
	OUT_WEIGHT,
	OUT_BIAS,
	LN2_WEIGHT,
	LN2_BIAS,
	UP_WEIGHT,
	UP_BIAS,
	DOWN_WEIGHT,
	DOWN_BIAS,
	LAYER_PARAMETERS,
	TOKEN_WEIGHT = LAYER_PARAMETERS,
	POSITION_WEIGHT,
	LN_WEIGHT,
	LN_BIAS,
	PARAMETERS
};

/* A parameter's place in the arenas of weights, gradients and moments. */
struct place {
	char name[40];      /* GPT-2's: "h.0.attn.c_attn.weight" */
	int rank, shape[2]; /* matrices are rows of inputs, columns of outputs */
	size_t first, len;  /* elements */
};

struct view {
	tl_dtype type;
	char *at; /* device address */
	size_t len;
};

enum kernel {
	PRODUCT,
	COLUMN_SUM,
	EMBED,
	POSITION_GRADIENT,
	TOKEN_GRADIENT,
	LAYER_NORM,
	LAYER_NORM_GRADIENT,
	ATTENTION,
	ATTENTION_DELTA,
	KEY_GRADIENT,
	QUERY_GRADIENT,
	CROSS_ENTROPY,
	SQUARE_SUM,
	ADAMW,
	VECTOR_PRODUCT,
	VECTOR_ATTENTION,
	SAMPLE,
	KERNELS
};

/* What a layer keeps of the forward pass for the backward pass; rows are batch · positions. */
struct layer {
	struct view norm1, mean1, rstd1, qkv, lse, attention, middle, norm2, mean2, rstd2, before, up, out;
};

extern const char *const kernel_names[KERNELS];
/* Parameters of product_kernel by their places: M, N; the three sizes of a tile; and how many there are. */
enum { PRODUCT_M = 7, PRODUCT_BLOCK_M = 15, PRODUCT_PARAMETERS = 20 };

/* jit.c compiles the kernels of the file `path`; compiled.c has them already. */
struct kernels;
struct kernels *kernels_open(tl_context *ctx, const char *path);
void kernels_close(struct kernels *k);
void kernels_launch(struct kernels *k, enum kernel kernel, const tl_config *config, const tl_arg *args, size_t n);

/* graph.c: launches as a CUDA graph. All 0: there is none. */
struct graph {
	void *executable;
};

/* How a token is drawn; see gpt_step. */
struct drawing {
	double temperature;
	int top_k, seed;
};

struct gpt {
	struct config config;
	tl_context *ctx;
	tl_device_info device;
	tl_dtype type;         /* of activations, and of weights in products: TL_F32 or TL_BF16 */
	const char *precision; /* of products of fp32: "ieee", or "tf32" */
	struct kernels *kernels;
	struct place *places; /* LAYER_PARAMETERS for each layer, then the others */
	int nplaces;
	size_t size, decayed; /* elements of an arena; the first of them, matrices, are subject to weight decay */
	tl_buffer *weights, *rounded, *gradients, *moment1, *moment2, *activations;
	int batch, length; /* rows that there is room for */
	bool training;
	struct layer *layers;
	struct view embedded, norm, mean, rstd, logits, loss;                    /* forward */
	struct view dx, dwide, dnorm, dattention, delta, parts, slices, squares; /* backward */
	struct view tokens, targets, sorted_rows, sorted_starts, sorted_tokens;  /* int32 */
	struct view x, attended, up, state;                                      /* generation */
	struct drawing drawing;
	struct graph graph; /* of the launches of gpt_step for this drawing */
	bool stepped;
	int32_t *host; /* what goes to tokens … sorted_tokens */
	size_t bytes;  /* of device memory in all */
};

/* A file's bytes, which the caller frees. Ends the program where it cannot be read. */
char *read_file(const char *path, size_t *len);

/* A model on a device, weights undefined; `batch` sequences of up to `length` tokens at once. */
void gpt_create(struct gpt *g, const char *device, const char *kernels, const struct config *c, tl_dtype type,
		int batch, int length, bool training);
void gpt_destroy(struct gpt *g);
/* Nearly normal numbers, as GPT-2 begins. */
void gpt_random_weights(struct gpt *g, uint64_t seed);
/* The arena's weights from and to the host: g->size numbers. */
void gpt_set_weights(struct gpt *g, const float *w);
void gpt_get(struct gpt *g, tl_buffer *arena, float *out);

/* The mean loss of predicting targets from tokens, `batch` sequences of `length`; with `share` > 0 also the gradients
 * of share · loss, which replace those there are, or with `add` are added. `reduce` is NULL or called as soon as the
 * gradients of the elements first … first + len of the arena are queued, the last time with len 0. */
double gpt_loss(struct gpt *g, const uint32_t *tokens, const uint32_t *targets, int batch, int length, double share,
		bool add, void (*reduce)(void *user, size_t first, size_t len), void *user);
struct adamw {
	double rate, beta1, beta2, epsilon, decay, clip;
};
/* A step with the gradients there are; step counts from 1. */
void gpt_update(struct gpt *g, const struct adamw *a, int step);
/* The norm of the gradients at the last step. */
double gpt_norm(struct gpt *g);
/* The next number of a generator: SplitMix64 (Steele, Lea and Flood, 2014). */
uint64_t next_random(uint64_t *state);

/* Fills the cache of keys and values with these tokens, from position 0 on. */
void gpt_prefill(struct gpt *g, const uint32_t *tokens, int n);
/* The newest token, at `position`, for the next gpt_step; `drawn` tokens have been drawn before. */
void gpt_put(struct gpt *g, uint32_t token, int position, int drawn);
/* One more token, drawn at this temperature from the top_k likeliest (0: all). */
uint32_t gpt_step(struct gpt *g, double temperature, int top_k, int seed);

/* libtl leaves the thread's context as it was: the driver's functions and NCCL's need that of the stream. */
void cuda_enter(void *stream);
void cuda_leave(void);
/* Another stream of the same context; it lasts as long as the process. NULL where there is no driver. */
void *cuda_stream(void *beside);

/* False where there are none: launches run, then, as always. */
bool graph_begin(struct graph *g, void *stream);
/* Of the launches since graph_begin, which have not run. */
void graph_end(struct graph *g, void *stream);
/* False if there is none. */
bool graph_launch(const struct graph *g, void *stream);
void graph_destroy(struct graph *g);

/* --- files --------------------------------------------------------------------------------------------------- */

/* A file of weights in safetensors' format: GPT-2's, or a checkpoint, which has the moments and what follows too; or a
 * folder of .npy files, the weights alone. */
struct checkpoint {
	struct config config;
	int step; /* steps done; 0 also where it has no moments */
	uint64_t seed;
	char tokenizer[256];                /* a folder, or "bytes" */
	float *weights, *moment1, *moment2; /* as the arenas; the moments may be NULL */
};
/* Ends the program where the file is damaged or no GPT-2. heads: 0 where GPT-2's 64 channels a head are right. */
void checkpoint_read(struct checkpoint *c, const char *path, int heads);
/* Writes the file anew by its side and renames it. An error message, or NULL. */
const char *checkpoint_write(const struct checkpoint *c, const char *path);
void checkpoint_free(struct checkpoint *c);
/* The places of the parameters in the arenas; the caller frees them. */
struct place *gpt_places(const struct config *c, int *n, size_t *size, size_t *decayed);

/* --- text ---------------------------------------------------------------------------------------------------- */

struct tokenizer;
/* `folder` NULL or "bytes": bytes, 256 tokens. Else GPT-2's byte-level BPE of folder/vocab.json and folder/merges.txt;
 * ends the program where these are damaged. */
struct tokenizer *tokenizer_open(const char *folder);
void tokenizer_close(struct tokenizer *t);
int tokenizer_size(const struct tokenizer *t);
/* An array of *n tokens, which the caller frees. */
uint32_t *tokenizer_encode(const struct tokenizer *t, const char *text, size_t len, size_t *n);
/* The bytes of a token, *len of them, valid as long as t. */
const char *tokenizer_decode(const struct tokenizer *t, uint32_t token, size_t *len);

#endif

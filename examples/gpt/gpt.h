/* A GPT-2 style transformer on libtl. model.c computes, files.c and npy.c store weights, tokenizer.c encodes text,
 * sample.c generates text, gpt.c is the command line. */
#ifndef GPT_H
#define GPT_H

#include <tl.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Ends the program with status 2 and a message on standard error. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program with libtl's message if the call failed. */
void must(tl_status s);

/* --- the model ----------------------------------------------------------------------------------------------- */

struct config {
	int vocabulary, context, channels, heads, layers;
};

/* Parameters of a layer, followed by the parameters of the model. */
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
	int rank, shape[2]; /* matrices are inputs × outputs */
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

/* Activations of a layer that the backward pass needs; rows are batch · positions. */
struct layer {
	struct view norm1, mean1, rstd1, qkv, lse, attention, middle, norm2, mean2, rstd2, before, up, out;
};

extern const char *const kernel_names[KERNELS];
/* Indices of product_kernel's parameters: M, the first of three tile sizes, and the number of parameters. N follows
 * M. */
enum { PRODUCT_M = 7, PRODUCT_BLOCK_M = 15, PRODUCT_PARAMETERS = 20 };

/* Kernels of the file `path`, compiled at run time by jit.c; compiled.c has them compiled ahead of time. */
struct kernels;
struct kernels *kernels_open(tl_context *ctx, const char *path);
void kernels_close(struct kernels *k);
void kernels_launch(struct kernels *k, enum kernel kernel, const tl_config *config, const tl_arg *args, size_t n);

/* graph.c: launches as a CUDA graph. All 0: no graph. */
struct graph {
	void *executable;
};

/* The sampling of a token; see gpt_step. */
struct drawing {
	double temperature;
	int top_k, seed;
};

struct gpt {
	struct config config;
	tl_context *ctx;
	tl_device_info device;
	tl_dtype type;         /* of activations, and of the weights in products: TL_F32 or TL_BF16 */
	const char *precision; /* of products of fp32: "ieee", or "tf32" */
	struct kernels *kernels;
	struct place *places; /* LAYER_PARAMETERS for each layer, then the others */
	int nplaces;
	size_t size, decayed; /* elements of an arena; the first `decayed` elements, the matrices, have weight decay */
	tl_buffer *weights, *rounded, *gradients, *moment1, *moment2, *activations;
	int batch, length; /* capacity: rows are batch · length */
	bool training;
	struct layer *layers;
	struct view embedded, norm, mean, rstd, logits, loss;                    /* forward */
	struct view dx, dwide, dnorm, dattention, delta, parts, slices, squares; /* backward */
	struct view tokens, targets, sorted_rows, sorted_starts, sorted_tokens;  /* int32 */
	struct view x, attended, up, state;                                      /* generation */
	struct drawing drawing;
	struct graph graph; /* of the launches of gpt_step for `drawing` */
	bool stepped;
	int32_t *host; /* host copy of tokens … sorted_tokens */
	size_t bytes;  /* total device memory */
};

/* The bytes of a file; the caller frees them. Ends the program if the file cannot be read. */
char *read_file(const char *path, size_t *len);

/* Creates a model on a device, with undefined weights, for `batch` sequences of up to `length` tokens. */
void gpt_create(struct gpt *g, const char *device, const char *kernels, const struct config *c, tl_dtype type,
		int batch, int length, bool training);
void gpt_destroy(struct gpt *g);
/* Sets approximately normal random weights, as in GPT-2's initialisation. */
void gpt_random_weights(struct gpt *g, uint64_t seed);
/* Copy an arena from and to the host: g->size numbers. */
void gpt_set_weights(struct gpt *g, const float *w);
void gpt_get(struct gpt *g, tl_buffer *arena, float *out);

/* The mean loss of predicting targets from tokens, for `batch` sequences of `length`. With `share` > 0 it also computes
 * the gradients of share · loss. They replace the gradients of the model, or with `add` are added to them. `reduce` is
 * NULL, or is called when the gradients of elements first … first + len of the arena are queued; the last call has len
 * 0. */
double gpt_loss(struct gpt *g, const uint32_t *tokens, const uint32_t *targets, int batch, int length, double share,
		bool add, void (*reduce)(void *user, size_t first, size_t len), void *user);
struct adamw {
	double rate, beta1, beta2, epsilon, decay, clip;
};
/* An optimiser step with the current gradients; `step` counts from 1. */
void gpt_update(struct gpt *g, const struct adamw *a, int step);
/* The norm of the gradients in the last step. */
double gpt_norm(struct gpt *g);
/* The next number of a random generator: SplitMix64 (Steele, Lea and Flood, 2014). */
uint64_t next_random(uint64_t *state);

/* Fills the cache of keys and values with these tokens, from position 0. */
void gpt_prefill(struct gpt *g, const uint32_t *tokens, int n);
/* Sets the newest token, at `position`, for the next gpt_step; `drawn` tokens have been drawn before. */
void gpt_put(struct gpt *g, uint32_t token, int position, int drawn);
/* Draws the next token at this temperature from the top_k most likely tokens (0: all). */
uint32_t gpt_step(struct gpt *g, double temperature, int top_k, int seed);

/* Make the stream's context current for calls of the driver and of NCCL, and restore the thread's context. */
void cuda_enter(void *stream);
void cuda_leave(void);
/* A new stream in the context of the stream `beside`, for the lifetime of the process. NULL if there is no driver. */
void *cuda_stream(void *beside);

/* Begins to record launches. False: there are no graphs, and launches run as usual. */
bool graph_begin(struct graph *g, void *stream);
/* Makes the graph of the launches since graph_begin, which have not run. */
void graph_end(struct graph *g, void *stream);
/* Runs the graph. False: there is none. */
bool graph_launch(const struct graph *g, void *stream);
void graph_destroy(struct graph *g);

/* --- files --------------------------------------------------------------------------------------------------- */

/* Weights of a file in the safetensors format (GPT-2's weights or a checkpoint, which also has the moments and the
 * other members), or of a folder of .npy files (weights only). */
struct checkpoint {
	struct config config;
	int step; /* steps done; 0 without moments */
	uint64_t seed;
	char tokenizer[256];                /* a folder, or "bytes" */
	float *weights, *moment1, *moment2; /* laid out as the arenas; the moments may be NULL */
};
/* Reads a checkpoint. Ends the program if the file is damaged or not a GPT-2 model. heads: 0 is GPT-2's 64 channels a
 * head. */
void checkpoint_read(struct checkpoint *c, const char *path, int heads);
/* Writes a temporary file in the same folder and renames it. Returns an error message, or NULL. */
const char *checkpoint_write(const struct checkpoint *c, const char *path);
void checkpoint_free(struct checkpoint *c);
/* The places of the parameters in the arenas; the caller frees the array. */
struct place *gpt_places(const struct config *c, int *n, size_t *size, size_t *decayed);

/* --- text ---------------------------------------------------------------------------------------------------- */

struct tokenizer;
/* `folder` NULL or "bytes": a token for each byte, 256 tokens. Else GPT-2's byte-level BPE with folder/vocab.json and
 * folder/merges.txt; ends the program if these are damaged. */
struct tokenizer *tokenizer_open(const char *folder);
void tokenizer_close(struct tokenizer *t);
int tokenizer_size(const struct tokenizer *t);
/* Encodes text to an array of *n tokens, which the caller frees. */
uint32_t *tokenizer_encode(const struct tokenizer *t, const char *text, size_t len, size_t *n);
/* The bytes of a token, *len of them, valid as long as t. */
const char *tokenizer_decode(const struct tokenizer *t, uint32_t token, size_t *len);

#endif

/* libtl: compile and launch Triton kernels from C.
 *
 *   tl_context *ctx;  tl_module *mod;  tl_kernel *add;
 *   tl_context_create(NULL, &ctx);                          // the best device here
 *   tl_module_load(ctx, "add.tl", &mod);
 *   tl_module_kernel(mod, "add_kernel", &add);
 *   tl_launch(add, &(tl_config){.grid = {n_blocks, 1, 1}},
 *             (tl_arg[]){tl_buf(TL_F32, x), tl_buf(TL_F32, y), tl_buf(TL_F32, out), tl_int(n), tl_int(1024)}, 5);
 *
 * A kernel is compiled on its first launch for each combination of argument types, constexpr values and
 * specialisation (pointers divisible by 16, integers divisible by 16 or 8, or by 256 where there are dots, where that
 * can change the code, and integers equal to 1), which is checked at every launch. Every call returns a tl_status;
 * tl_error() has the text. Contexts may be used from several threads at once. The CUDA driver is opened at run time; a
 * program that uses libtl starts on machines without one. */
#ifndef TL_H
#define TL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TL_API __attribute__((visibility("default")))

#define TL_VERSION "0.1"
#define TL_VERSION_NUMBER 100 /* 100 for each minor version, 10000 for a major one */
/* Those of the library that the program runs with. A program runs with every later library whose file has the same
 * number, libtl.so.N: functions stay, enumerations grow at their ends only, and structures into what is `reserved` in
 * them. What a program does not use in a structure must be 0; a library refuses a member that it does not know. */
TL_API int tl_version(void);
TL_API const char *tl_version_text(void);

typedef enum tl_status {
	TL_OK = 0,
	TL_ERR_COMPILE,   /* the kernel is wrong: tl_error() has diagnostics with source lines */
	TL_ERR_ARGUMENT,  /* this call is wrong: arguments do not fit the kernel, a NULL, a bad size */
	TL_ERR_DEVICE,    /* no such device, or no driver */
	TL_ERR_FILE,      /* a file cannot be read */
	TL_ERR_MEMORY,    /* out of memory, the device's or the host's */
	TL_ERR_DRIVER,    /* the driver refused; its own words are in the text */
	TL_ERR_KERNEL,    /* the kernel ran and failed: an access outside every buffer, a device_assert */
	/* a bug in libtl or LLVM, which ended this call only; the text has the pass and its IR. If it left the context
	 * in doubt, all later calls on that fail so, too: destroy it */
	TL_ERR_INTERNAL,
	/* two programs access the same memory, one writes, and nothing orders them (simulator). The launch has ended
	 * and its buffers can be read: which of the programs came last is chance */
	TL_ERR_RACE,
	TL_ERR_NOT_BUILT, /* the kernel would have to be compiled, and TL_NO_JIT=1 forbids it; the text names what */
} tl_status;

typedef struct tl_context tl_context; /* a device, its memory and the kernels compiled for it */
typedef struct tl_module tl_module;   /* a source file, or a kernel image */
typedef struct tl_kernel tl_kernel;   /* a jit function of a module */
typedef struct tl_buffer tl_buffer;   /* device memory */
typedef struct tl_prepared tl_prepared; /* variants of a kernel, bound for launches of least cost */
typedef struct tl_event tl_event;     /* a point in the work of a stream */

/* The message of this thread's last call that returns a tl_status, with caret and hint where a source is at fault;
 * empty if it succeeded. `ctx` may be NULL. Valid until the thread's next such call. */
TL_API const char *tl_error(const tl_context *ctx);
TL_API const char *tl_status_name(tl_status s);

/* The same for programs. What is not known is 0 or NULL. */
typedef struct tl_error_info {
	tl_status status;
	int driver_result;       /* CUDA's CUresult */
	const char *driver_call; /* "cuLaunchKernel" */
	/* A kernel on a GPU runs, and fails, behind the call that launched it: then it is the one launched last that
	 * had not been waited for; the text says where others could have failed, too. */
	const char *kernel;
	const char *file; /* where a source is at fault: the first error of it, or the place where the kernel failed */
	uint32_t line, column; /* from 1; column in bytes */
	const char *text;      /* as tl_error */
} tl_error_info;
/* Valid until the thread's next call that returns a tl_status. */
TL_API const tl_error_info *tl_error_details(void);

/* --- devices ------------------------------------------------------------------------------------------------- */

/* "cuda", "cuda:1"; "interp", the reference interpreter; "cpu", for whose instructions kernels are compiled; "sim",
 * "sim:80" …, which runs the PTX for sm_90a, sm_80 … on the CPU and checks it; NULL: cpu where there is no CUDA
 * driver or no GPU, else cuda; a driver or GPU that fails is an error. */
TL_API tl_status tl_context_create(const char *device, tl_context **out);
/* A context on the caller's CUcontext; NULL means the one current on this thread. It is not destroyed with ctx. */
TL_API tl_status tl_context_from_cuda(void *cu_context, tl_context **out);
/* For several GPUs: from now on `ctx` takes from `with`, and the other way round, what they compile, where their
 * devices have the same target and limits; each loads it for itself. Any number of contexts may share so, and be
 * destroyed in any order. Before the first launch in ctx, and while nothing else is done with it. */
TL_API tl_status tl_context_share(tl_context *ctx, tl_context *with);
/* Waits for the device, then frees the context, its modules, buffers and events, whose handles end with it: they must
 * not be used or destroyed any more. NULL is allowed. */
TL_API void tl_context_destroy(tl_context *ctx);
/* Instead, where objects are destroyed in any order, as garbage collectors do: the context's handle ends, and its
 * modules, buffers and events can be used until they are destroyed; with the last of these, the context ends. */
TL_API void tl_context_release(tl_context *ctx);
/* Waits for everything launched in the context, on callers' streams too. */
TL_API tl_status tl_synchronize(tl_context *ctx);

typedef struct tl_device_info {
	char kind[16];       /* "cuda", "interp", "cpu", "sim" */
	char name[128];      /* "NVIDIA H100 80GB HBM3"; the CPU's name for interp and cpu; "simulated sm_90a" */
	char target[32];     /* "cuda:sm_90a"; "cpu:avx2"; "cpu" of interp */
	int num_sms;         /* multiprocessors; CPU threads for interp, cpu and sim */
	size_t shared_bytes; /* shared memory a block may use; 0 for interp and cpu, which have none */
	size_t memory_bytes;
	/* CUDA's compute capability, 10 times the major number and the minor: 90; 0 for interp and cpu */
	int capability;
	char spec[32];  /* what tl_context_create takes: "cuda:0" */
	uint64_t reserved[8];
} tl_device_info;
TL_API tl_status tl_device(tl_context *ctx, tl_device_info *out);
/* The devices that a context can be created on, GPUs first; no context is created. A driver that is there and fails is
 * an error. */
TL_API tl_status tl_device_count(int *out);
TL_API tl_status tl_device_at(int index, tl_device_info *out);

/* --- what a program lends to a context ----------------------------------------------------------------------- */

/* These hold for what comes later; call them before other threads use the context. */

/* Memory for the buffers that the context creates: device addresses for cuda; else the host's, of more bytes than the
 * buffer has, since guards surround it. `alloc` returns NULL where there is none, and else an address that the
 * alignment divides; `free` gets back what alloc returned, and the bytes it was asked for. NULL: the context's own
 * again. */
typedef struct tl_allocator {
	void *(*alloc)(void *user, size_t bytes, size_t alignment);
	void (*free)(void *user, void *p, size_t bytes);
	void *user;
} tl_allocator;
TL_API tl_status tl_context_allocator(tl_context *ctx, const tl_allocator *a);
/* How many threads a launch uses on interp, cpu and sim; 0: $OMP_NUM_THREADS, or as many
 * as there are processors. On cuda it changes nothing. */
TL_API tl_status tl_context_threads(tl_context *ctx, int threads);

typedef enum tl_log_kind {
	TL_LOG_PRINT,  /* of device_print, whole lines; without a callback it goes to standard output */
	/* what $TL_SIM_REPORT asked for, and what cpu:check finds that nobody has written; to standard error */
	TL_LOG_REPORT,
} tl_log_kind;
/* `text` ends in 0 too, and is valid during the callback, which may come from several threads at once, must return, and
 * must not call the library. CUDA's driver writes device_print to standard output itself. */
typedef void tl_log_fn(void *user, tl_log_kind kind, const char *text, size_t len);
TL_API tl_status tl_context_log(tl_context *ctx, tl_log_fn *fn, void *user);

/* --- diagnostics --------------------------------------------------------------------------------------------- */

typedef enum tl_severity { TL_SEVERITY_ERROR, TL_SEVERITY_WARNING, TL_SEVERITY_NOTE, TL_SEVERITY_REMARK } tl_severity;

/* A diagnostic of the compiler about a kernel. The texts are valid during the callback. */
typedef struct tl_diagnostic {
	tl_severity severity; /* a note belongs to the message before it */
	const char *file;     /* the module's name; NULL: it is about no place in a source */
	uint32_t line, column; /* from 1, the column in bytes; 0 without a file */
	const char *text;     /* the message, one line */
	const char *hint;     /* a hint; or NULL */
	const char *shown;    /* all of it as tlc prints it, with the source line and a caret */
} tl_diagnostic;
typedef void tl_diagnostic_fn(void *user, const tl_diagnostic *d);

/* Calls `fn` for each error and warning of the modules that are loaded and the kernels that are compiled in the context
 * from now on; with `remarks`, for each remark too: what was chosen for each load, store, dot and loop. It is called in
 * the thread that loads or compiles, in several at once if these do, and must return. NULL: nothing is called. */
TL_API tl_status tl_context_diagnostics(tl_context *ctx, tl_diagnostic_fn *fn, void *user, bool remarks);
/* With or without a callback: the warnings, and the errors of kernels, that have come up for the module since it was
 * loaded, each once, as tlc prints them; "" if there are none. Free the text with tl_free. */
TL_API tl_status tl_module_diagnostics(tl_module *m, char **text);

/* --- memory -------------------------------------------------------------------------------------------------- */

TL_API tl_status tl_buffer_create(tl_context *ctx, size_t bytes, tl_buffer **out);
TL_API void tl_buffer_destroy(tl_buffer *b);
TL_API void *tl_buffer_ptr(const tl_buffer *b); /* device address */
TL_API size_t tl_buffer_size(const tl_buffer *b);
/* Copies to and from host memory; complete on return. offset + bytes must lie inside the buffer. They come after the
 * launches on the context's own stream; work on another stream must be waited for first. */
TL_API tl_status tl_buffer_write(tl_buffer *b, size_t offset, const void *src, size_t bytes);
TL_API tl_status tl_buffer_read(tl_buffer *b, size_t offset, void *dst, size_t bytes);
TL_API tl_status tl_buffer_fill(tl_buffer *b, uint8_t byte);

/* Memory of the host that the device reaches too, page-locked for cuda: copies to and from it need no waiting. Its
 * address, tl_buffer_ptr, is good on both sides. */
TL_API tl_status tl_buffer_create_host(tl_context *ctx, size_t bytes, tl_buffer **out);
/* A buffer of memory that is there already, the caller's, and stays the caller's: a device address for cuda, else the
 * host's. It must stay valid until the buffer is destroyed. On the others it must not overlap other buffers, and
 * on interp and sim an access less than 64 KB outside of it is an error. */
TL_API tl_status tl_buffer_wrap(tl_context *ctx, void *p, size_t bytes, tl_buffer **out);

/* The same as above, queued: what the host gives must stay as it is, and what it gets is there, when the stream has
 * come to it. Only host memory of tl_buffer_create_host, or page-locked otherwise, lets the call return before that.
 * `stream`: a CUstream; NULL: the context's own. On other devices there are none, and all is done on return. */
TL_API tl_status tl_buffer_write_async(tl_buffer *b, size_t offset, const void *src, size_t bytes, void *stream);
TL_API tl_status tl_buffer_read_async(tl_buffer *b, size_t offset, void *dst, size_t bytes, void *stream);
/* Within a device, or between two of one kind; in the same buffer the two parts must not overlap. The stream is of the
 * context of `dst`; launches of another context on `src` must have been waited for, by the host or by the stream
 * (tl_event_wait); those that overwrite `src` later, and its end, must wait for the copy. */
TL_API tl_status tl_buffer_copy_async(tl_buffer *dst, size_t dst_offset, const tl_buffer *src, size_t src_offset,
				      size_t bytes, void *stream);
/* `count` elements of 1, 2, 4 or 8 bytes, each as *element, from a multiple of their size on. */
TL_API tl_status tl_buffer_fill_async(tl_buffer *b, size_t offset, const void *element, size_t size, size_t count,
				      void *stream);

/* --- streams and events -------------------------------------------------------------------------------------- */

/* The context's own stream, a CUstream; NULL on other devices, which have none. It ends with the context. */
TL_API void *tl_context_stream(tl_context *ctx);
/* An event belongs to its context; streams as above. */
TL_API tl_status tl_event_create(tl_context *ctx, tl_event **out);
TL_API void tl_event_destroy(tl_event *e);
TL_API tl_status tl_event_record(tl_event *e, void *stream);
/* What is queued on the stream later waits for the event, as it was recorded last. */
TL_API tl_status tl_event_wait(tl_event *e, void *stream);
/* The host waits for it. */
TL_API tl_status tl_event_synchronize(tl_event *e);
/* Milliseconds from one event to the other, both of which must have been recorded and waited for. */
TL_API tl_status tl_event_elapsed(const tl_event *from, const tl_event *to, double *ms);

/* --- kernels ------------------------------------------------------------------------------------------------- */

/* Kernels in Triton's language; a name that ends in ".ttir" means the text of one kernel's tile IR. Or a kernel image,
 * as `tlc FILE --emit image` writes it, whatever its name: its kernel takes the parameters that are left at run time,
 * constexprs and integers equal to 1 not among them, and a launch whose arguments are not what it was compiled for is
 * refused, with the parameter's name. TL_ERR_FILE: the image is damaged, or of another version. */
TL_API tl_status tl_module_load(tl_context *ctx, const char *path, tl_module **out);
/* From memory; `name` is for messages. The text is copied. */
TL_API tl_status tl_module_load_source(tl_context *ctx, const char *name, const char *text, size_t len,
				       tl_module **out);
/* Waits for everything launched in the context if kernels of the module were compiled, since these may be running. */
TL_API void tl_module_destroy(tl_module *m);
/* The kernel belongs to its module. */
TL_API tl_status tl_module_kernel(tl_module *m, const char *name, tl_kernel **out);

/* A parameter. The texts are expressions of the language, and valid as long as the kernel is. */
typedef struct tl_parameter {
	const char *name;
	bool is_constexpr;
	const char *annotation;    /* NULL: none */
	const char *default_value; /* NULL: none, an argument is needed */
} tl_parameter;
TL_API size_t tl_kernel_parameters(const tl_kernel *k);
/* NULL: there is none */
TL_API const tl_parameter *tl_kernel_parameter(const tl_kernel *k, size_t index);
TL_API const char *tl_kernel_name(const tl_kernel *k);

typedef enum tl_dtype {
	TL_I1, TL_I8, TL_I16, TL_I32, TL_I64, TL_U8, TL_U16, TL_U32, TL_U64,
	TL_F8E4M3, TL_F8E5M2, TL_F16, TL_BF16, TL_F32, TL_F64,
	TL_F8E4B15,
	TL_F8E4B8, TL_F8E5B16, /* named, as constexprs may name them, but refused as types of values */
} tl_dtype;
TL_API const char *tl_dtype_name(tl_dtype t); /* "fp16" */
TL_API size_t tl_dtype_size(tl_dtype t);      /* bytes in memory; int1 takes one */

typedef enum tl_arg_kind {
	TL_ARG_NONE,
	TL_ARG_PTR,
	TL_ARG_INT,
	TL_ARG_FLOAT,
	TL_ARG_BOOL,
	TL_ARG_STR,
	TL_ARG_TYPE,
	TL_ARG_FUNC,
	TL_ARG_UINT,
	TL_ARG_TUPLE,
	TL_ARG_DESCRIPTOR,
	TL_ARG_OPEN
} tl_arg_kind;

typedef struct tl_tuple tl_tuple;
typedef struct tl_descriptor tl_descriptor;

/* One argument, constexpr or not, in parameter order. Make them with the functions below. */
typedef struct tl_arg {
	tl_arg_kind kind;
	tl_dtype dtype;  /* of the pointee, integer or float; of TL_ARG_TYPE itself */
	uint64_t typed : 4;  /* 0 for tl_int() and tl_uint(): i32 where it fits, as in Triton; else 1 */
	uint64_t constant : 4; /* 1: a compile-time value, whatever the parameter is; 2: not specialised */
	uint64_t bytes : 56; /* of a pointer: how much memory behind it is meant; 0: the allocation around it */
	__extension__ union { /* without a name, which C99 lacks */
		void *ptr;
		int64_t i;
		uint64_t u;
		double f;
		const char *s;
		const tl_tuple *tuple;
		const tl_descriptor *descriptor;
	};
} tl_arg;

/* A device pointer to elements of type t. How much memory is behind it decides whether offsets need 64 bits, and is
 * asked of the allocation around it; in memory that the context does not know (the host's, never wrapped) 32 bits must
 * do, unless tl_range says more. */
static inline tl_arg tl_ptr(tl_dtype t, const void *p)
{
	tl_arg a = {TL_ARG_PTR, t, 1, 0, 0, {0}};
	a.ptr = (void *)(uintptr_t)p;
	return a;
}
/* The same, where the kernel touches no more than these bytes from p on: a part of a buffer, beside others that have
 * nothing to do with it. Which arguments overlap decides how a kernel that reads through one and writes through another
 * is compiled. */
static inline tl_arg tl_range(tl_dtype t, const void *p, size_t bytes)
{
	tl_arg a = tl_ptr(t, p);
	a.bytes = bytes < 0xFFFFFFFFFFFFFF ? bytes & 0xFFFFFFFFFFFFFF : 0xFFFFFFFFFFFFFF; /* which is as good as all */
	return a;
}
static inline tl_arg tl_buf(tl_dtype t, const tl_buffer *b) { return tl_range(t, tl_buffer_ptr(b), tl_buffer_size(b)); }
/* An integer: i32, or i64 where that is too small; or the value of a constexpr parameter. */
static inline tl_arg tl_int(int64_t i)
{
	tl_arg a = {TL_ARG_INT, TL_I32, 0, 0, 0, {0}};
	a.i = i;
	return a;
}
static inline tl_arg tl_int_typed(tl_dtype t, int64_t i)
{
	tl_arg a = {TL_ARG_INT, t, 1, 0, 0, {0}};
	a.i = i;
	return a;
}
/* The same from 0 to 2^64 - 1: an i32, an i64 where that is too small, and from 2^63 a u64. */
static inline tl_arg tl_uint(uint64_t u)
{
	tl_arg a = {TL_ARG_UINT, TL_I32, 0, 0, 0, {0}};
	a.u = u;
	return a;
}
static inline tl_arg tl_uint_typed(tl_dtype t, uint64_t u)
{
	tl_arg a = {TL_ARG_UINT, t, 1, 0, 0, {0}};
	a.u = u;
	return a;
}
static inline tl_arg tl_float(double f)
{
	tl_arg a = {TL_ARG_FLOAT, TL_F32, 1, 0, 0, {0}};
	a.f = f;
	return a;
}
static inline tl_arg tl_float_typed(tl_dtype t, double f)
{
	tl_arg a = {TL_ARG_FLOAT, t, 1, 0, 0, {0}};
	a.f = f;
	return a;
}
static inline tl_arg tl_bool(bool b)
{
	tl_arg a = {TL_ARG_BOOL, TL_I1, 1, 0, 0, {0}};
	a.i = b;
	return a;
}
static inline tl_arg tl_none(void)
{
	tl_arg a = {TL_ARG_NONE, TL_I32, 0, 0, 0, {0}};
	return a;
}
/* In the place of a parameter that this call leaves open: it gets what it would get behind the last argument, its
 * default, or what the kernel's decorators or a tuner give it. */
static inline tl_arg tl_open(void)
{
	tl_arg a = {TL_ARG_OPEN, TL_I32, 0, 0, 0, {0}};
	return a;
}
/* For constexpr parameters: a string, a dtype, a jit function of the same module. */
static inline tl_arg tl_str(const char *s)
{
	tl_arg a = {TL_ARG_STR, TL_I8, 1, 0, 0, {0}};
	a.s = s;
	return a;
}
static inline tl_arg tl_type(tl_dtype t)
{
	tl_arg a = {TL_ARG_TYPE, t, 1, 0, 0, {0}};
	return a;
}
static inline tl_arg tl_func(const char *name)
{
	tl_arg a = {TL_ARG_FUNC, TL_I8, 1, 0, 0, {0}};
	a.s = name;
	return a;
}

/* The argument as a compile-time value, also where the parameter is not tl.constexpr: a number, for which the kernel is
 * then compiled, a string or a dtype in a tuple. Not for pointers, tuples and descriptors. */
static inline tl_arg tl_constexpr(tl_arg a)
{
	a.constant = 1;
	return a;
}

/* The argument without specialisation, as jit's do_not_specialize has it for a parameter: of its value or address
 * nothing is compiled in but the type. Not for tuples and descriptors, but for elements of tuples. */
static inline tl_arg tl_unspecialized(tl_arg a)
{
	a.constant = 2;
	return a;
}

/* A tuple, of which elements may be tuples and descriptors too: in the kernel x[i], or x.name where it has names. Each
 * element counts as an argument of its own: its type, its specialisation, None, a function; strings and dtypes are
 * compile-time values. A tuple for a tl.constexpr parameter holds compile-time values only. */
struct tl_tuple {
	size_t len;
	const tl_arg *items;
	const char *const *names; /* of a named tuple: its `len` fields; else NULL */
};
/* The tuple and what it points to must stay as they are during the call. */
static inline tl_arg tl_tuple_arg(const tl_tuple *t)
{
	tl_arg a = {TL_ARG_TUPLE, TL_I8, 1, 0, 0, {0}};
	a.tuple = t;
	return a;
}

enum { TL_MAX_RANK = 5 };

/* A tensor in device memory and the blocks of it that a kernel loads and stores: in the kernel the same as
 * tl.make_tensor_descriptor(…). What a tensor map could not describe is refused, with TL_ERR_ARGUMENT. */
struct tl_descriptor {
	tl_dtype dtype;
	int rank;                     /* 1 to TL_MAX_RANK */
	const void *base;             /* device address, divisible by 16 */
	int64_t shape[TL_MAX_RANK];   /* elements, outermost dimension first: 1 to 2^31 - 1 */
	/* elements from one to the next along each dimension: of the last 1, of the others a multiple of 16 bytes */
	int64_t strides[TL_MAX_RANK];
	/* elements: powers of two, at most 2^20 together; along the last dimension at least 16 bytes */
	int32_t block_shape[TL_MAX_RANK];
	bool pads_with_nan;           /* outside the tensor a load gives NaN instead of 0; for floats */
	bool rounds_to_tf32;          /* loads round to the nearest tf32, ties to even; for fp32 */
};
/* A descriptor of a tensor without gaps, row by row. `shape` and `block_shape` have `rank` elements. A tensor whose
 * strides leave 63 bits, or of a rank that there is not, gets a descriptor that no launch takes. */
static inline tl_descriptor tl_describe(tl_dtype t, const void *base, int rank, const int64_t *shape,
					const int32_t *block_shape)
{
	tl_descriptor d = {t, rank, base, {0}, {0}, {0}, false, false};
	int64_t stride = 1;
	int i = rank >= 1 && rank <= TL_MAX_RANK ? rank : 0;
	while (i-- > 0) {
		d.shape[i] = shape[i];
		d.strides[i] = stride;
		d.block_shape[i] = block_shape[i];
		/* 1 is refused, as no multiple of 16 bytes */
		stride = shape[i] > 0 && stride <= INT64_MAX / shape[i] ? stride * shape[i] : 1;
	}
	return d;
}
/* The descriptor must stay as it is during the call, the tensor until the kernel has finished. */
static inline tl_arg tl_desc(const tl_descriptor *d)
{
	tl_arg a = {TL_ARG_DESCRIPTOR, TL_I8, 1, 0, 0, {0}};
	a.descriptor = d;
	return a;
}

typedef enum tl_specialization {
	TL_SPECIALIZE_USEFUL, /* by what of the arguments can change the code */
	TL_SPECIALIZE_NONE,   /* by types and compile-time values alone: one variant for all values and addresses */
} tl_specialization;

typedef struct tl_config {
	uint32_t grid[3]; /* programs along each axis; see grid_dims */
	int num_warps;    /* a power of two, 1 to 32; 0: 4 */
	int num_stages;   /* of software pipelining; 0: 3 */
	/* walk a two-dimensional grid in groups of this many rows, for L2 reuse; 1: not; 0: 16 on a GPU, where
	 * products of many rows and columns share what they load, else not */
	int group_pids;
	/* device_assert stops the kernel on a GPU too (on interp always), and so does an overflow of integers */
	bool debug;
	void *stream;     /* the caller's CUstream; NULL: the context's own, which keeps step with CUDA's legacy default
			   * stream, as streams made without flags do */
	/* the most blocks (CTAs) of a kernel whose blocks run several programs each, as products do where there are
	 * more programs than multiprocessors; 0: as many as multiprocessors (132 on sim); -1: a block for each
	 * program */
	int max_ctas;
	/* how many axes of `grid` are set, 1 to 3: the others count as 1, and a 0 along one that is set means that
	 * nothing runs. 0: x is set, and axes in front of one that is not 0; so {3} is 3 programs and {0} none */
	int grid_dims;
	/* all blocks of the grid are on the GPU at the same time, so that they may wait for one another; a grid for
	 * which there is no room is refused. Not on interp, cpu and sim, which run one program after the other */
	bool launch_cooperative_grid;
	/* programmatic dependent launch: the kernel may begin when those before it on the stream have called
	 * tl.extra.cuda.gdc_launch_dependents() or ended, and must call gdc_wait() before it reads what they write
	 * (sm_90; on others, interp, cpu and sim it begins when they are over) */
	bool launch_pdl;
	tl_specialization specialization; /* which variants are compiled; arguments alone: tl_unspecialized */
	/* the most registers of a thread, 1 to 256 (a GPU gives 24 to 255); values beyond are kept in memory, so that
	 * more blocks fit a multiprocessor; 0: ptxas decides */
	int maxnreg;
	uint64_t reserved[3];
} tl_config;

/* Compiles if needed and launches, nothing if the grid has no programs; returns before the kernel has finished on CUDA.
 * The caller's device pointers and buffers must stay valid until then. While cfg->stream is captured into a CUDA graph
 * nothing is compiled or loaded: TL_ERR_ARGUMENT where that would be needed, so call tl_prepare before. */
TL_API tl_status tl_launch(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs);
/* Compiles without launching, so that launches like this one compile nothing: for cfg's grid, since products are
 * compiled apart for grids of more programs than multiprocessors. cfg may be NULL, for the defaults.
 *
 * With `out` (else NULL) it makes a handle, whose launches cost least and never compile. A handle is bound to the
 * variant for these arguments, and where that takes tensor maps to one that does without, for rows that a tensor map
 * cannot describe. It belongs to the kernel, and ends with its module at the latest. */
TL_API tl_status tl_prepare(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_prepared **out);
/* Binds the variants for these arguments to the handle, too. `grid`: as many programs along each axis; NULL: as in
 * tl_prepare's config. Launches may go on meanwhile. */
TL_API tl_status tl_prepared_add(tl_prepared *p, const uint32_t grid[3], const tl_arg *args, size_t nargs);
/* Launches the variant that counts on most of what these arguments are, constexprs among them as in tl_launch: where 16
 * divided an argument of tl_prepare it must divide this one, constants, None and integers equal to 1 must be the same,
 * other numbers may be any that their parameter takes. Where none fits, TL_ERR_ARGUMENT names the argument, or the
 * condition, that is missed. `grid` as above; with a 0 in it nothing runs. `stream`: as in tl_config. */
TL_API tl_status tl_prepared_launch(const tl_prepared *p, const uint32_t grid[3], void *stream, const tl_arg *args,
				    size_t nargs);
/* No launch may be under way in another thread; what has been launched runs on. NULL is allowed. */
TL_API void tl_prepared_destroy(tl_prepared *p);
/* Median time of one launch in milliseconds over `repeats` timed launches after `warmup` untimed ones. On CUDA the L2
 * cache is emptied before each; where there is no memory left to do that, tl_error() has a note although TL_OK is
 * returned. */
TL_API tl_status tl_time(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup, int repeats,
			 double *median_ms);
/* The time of each of the `repeats` launches, in their order. */
TL_API tl_status tl_time_each(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup,
			      int repeats, double *ms);
/* A stage of the compilation as text: "ttir", "ttgir", "llir" or "ptx"; or "remarks": what was chosen for each load,
 * store, dot, reduction and loop, with source lines, and where it is not the best, why; on CUDA it ends in what
 * tl_kernel_resources tells; or "schedule": the steps of each pipelined loop, a table each; or "calls": the calls of
 * built-in functions, with the names of the arguments given, a line each. Only "ttir" and "calls" on interp. cfg may be
 * NULL. Free the text with tl_free. */
TL_API tl_status tl_kernel_dump(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, const char *stage,
				char **text);
TL_API void tl_free(void *p);

/* The resources of a launch on a multiprocessor. */
typedef struct tl_resources {
	int registers;       /* of a thread; 0: not known (sim) */
	size_t local_bytes;  /* of a thread, in slow memory: more than 0 where values did not fit the registers */
	int threads;         /* of a block */
	size_t shared_bytes; /* of a block */
	int blocks;          /* of a program: more than 1 where it runs on a cluster */
	int resident;        /* blocks that a multiprocessor holds at once; 0: not known (sim, clusters) */
	uint64_t reserved[4];
} tl_resources;
/* Compiles if needed; all 0 on interp. cfg may be NULL. */
TL_API tl_status tl_kernel_resources(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
				     tl_resources *out);

/* --- tuning -------------------------------------------------------------------------------------------------- */

/* Launches a kernel with the best of its configurations, which it finds by trying them on the arguments of the first
 * launch for each key: those of the kernel's decorators (triton.autotune), and those added here. Memory that the kernel
 * writes is as it was before when they have been tried. What was found is kept on disk beside the compiled kernels, for
 * other processes. */
typedef struct tl_tuner tl_tuner;

/* Zero is what is usual. Where the kernel has a decorator, what is not set here is the decorator's. */
typedef struct tl_tuning {
	/* Names of parameters. A choice holds for launches where their values are the same, and the types of all
	 * pointers and all compile-time values; nothing else. */
	const char *const *keys;
	size_t nkeys;
	const char *const *reset; /* pointers whose memory is to be 0 in front of each run */
	size_t nreset;
	const char *const *restore; /* … is to be as it was, even if the kernel seems not to read it */
	size_t nrestore;
	int warmup_ms, rep_ms; /* how long a configuration runs before it is timed, and while it is; 5 and 10 */
	int limit_ms;          /* a configuration that runs longer has failed, on devices that can tell; 10000 */
	int threads;           /* that compile; 0: as many as there are processors */
	bool again;            /* try them although a choice is on disk */
	bool check;            /* compare what each writes with what the first one wrote */
	double tolerance;      /* |x - first| may be that part of 1 + |first|; 0: equal */
	/* On CUDA, a program and its arguments, the last one followed by NULL, in whose process configurations are
	 * tried, with copies of the memory behind the arguments: it calls tl_tuner_serve(0), as `tlc serve` does. One
	 * that fails or does not end ends this process, and the others are tried in a new one. NULL: they are tried in
	 * the context, which is lost then. Pointers in memory lead nowhere there. */
	const char *const *helper;
	uint64_t reserved[7];
} tl_tuning;

/* `t` may be NULL. The tuner belongs to the caller, and must be destroyed before the kernel's module is. */
TL_API tl_status tl_tuner_create(tl_kernel *k, const tl_tuning *t, tl_tuner **out);
TL_API void tl_tuner_destroy(tl_tuner *t);

/* Of the process of a helper: does what the tuner at the other end of the socket wants, until it has closed that. Call
 * it before all other use of CUDA, and let the process end then, by _exit: a kernel may be running that has no end. */
TL_API void tl_tuner_serve(int socket);

typedef struct tl_named_arg {
	const char *name; /* of a parameter */
	tl_arg value;     /* a compile-time value */
} tl_named_arg;
/* One more configuration: values for parameters that launches leave open, and of `options` num_warps, num_stages,
 * group_pids, max_ctas and maxnreg, where they are not 0. `options` may be NULL. Before the first launch. */
TL_API tl_status tl_tuner_add(tl_tuner *t, const tl_config *options, const tl_named_arg *values, size_t n);

/* Makes a configuration a launch: *cfg has its options and args, nargs of them, a value for each parameter of the
 * kernel, those of the configuration and of heuristics too. Sets cfg->grid, and what else depends on the configuration,
 * such as the block shape of descriptors. Called for each configuration and at each launch. The configuration is not
 * tried where it returns anything but TL_OK. */
typedef tl_status tl_plan_fn(void *user, tl_config *cfg, tl_arg *args, size_t nargs);

/* As tl_launch, with the best configuration, whose options go before those of cfg. Parameters that configurations give
 * are left open: tl_open(). With `plan` NULL the grid is that of cfg. */
TL_API tl_status tl_tuner_launch(tl_tuner *t, const tl_config *cfg, tl_plan_fn *plan, void *user, const tl_arg *args,
				 size_t nargs);

typedef struct tl_choice {
	const char *text;  /* "BLOCK=128 num_warps=8", until the tuner is destroyed */
	tl_config config;  /* that is launched */
	double cost;       /* milliseconds of a launch, or on sim estimated cycles; 0: there was nothing to try */
	int tried, failed; /* configurations that have run, or could not; 0 if the choice was on disk */
	bool stored;       /* it was */
	uint64_t reserved[4];
} tl_choice;
/* The same without the launch: what it would run. `out` may be NULL; after an error it is 0. */
TL_API tl_status tl_tuner_choose(tl_tuner *t, const tl_config *cfg, tl_plan_fn *plan, void *user, const tl_arg *args,
				 size_t nargs, tl_choice *out);
/* What became of each configuration, as JSON: an array of an object for each key that was tuned, in the order in which
 * that happened. "equal_within": its time cannot be told from the best one's; they lie within this part of each other,
 * null where too few were taken to say. Free the text with tl_free. */
TL_API tl_status tl_tuner_report(tl_tuner *t, char **json);

/* --- kernels compiled ahead of time -------------------------------------------------------------------------- */

/* What `tlc build FILE -o NAME` writes: NAME.h declares a function to load each kernel and one to launch it, with
 * parameters of its own types; NAME.c has its images. They call what follows, and link with libtl or with the small
 * libtlrt, which has this, contexts and buffers. */

/* A kernel's images, of one architecture, on a device. Immutable: launched from several threads at once. */
typedef struct tl_compiled tl_compiled;
typedef struct tl_blob {
	const void *bytes;
	size_t size;
} tl_blob;
/* Loads those of a kernel's images that suit the device best: all variants for its architecture, or for an earlier one.
 * Where images are of several variants, the first one that an argument allows is launched. */
TL_API tl_status tl_compiled_load(tl_context *ctx, const tl_blob *images, size_t n, tl_compiled **out);
/* Waits for everything launched in the context. NULL is allowed; else the context frees it. */
TL_API void tl_compiled_destroy(tl_compiled *c);
/* Of cfg the grid, the stream, max_ctas and launch_… count. args: the value of each parameter in its low bytes, and 0
 * for compile-time values. */
TL_API tl_status tl_compiled_launch(tl_compiled *c, const tl_config *cfg, const uint64_t *args, size_t nargs);

/* A row of the table NAME_table[NAME_table_len] that `tlc build MANIFEST -o NAME` writes, for programs that look up
 * kernels. */
typedef struct tl_built {
	const char *kernel;
	/* The types of the arguments, and compile-time values as the language writes them, by parameters:
	 * "x_ptr=*fp32, y_ptr=None, n=i32, BLOCK=1024". */
	const char *arguments;
	tl_status (*load)(tl_context *ctx, tl_compiled **out); /* as NAME.h declares it */
} tl_built;

/* The kernels of such a table, launched by name as tl_launch would: each row is loaded when it is launched first. */
typedef struct tl_library tl_library;
/* n rows, which the library keeps using. */
TL_API tl_status tl_library_create(tl_context *ctx, const tl_built *table, size_t n, tl_library **out);
/* Waits for everything launched in the context. NULL is allowed; else the context frees it. */
TL_API void tl_library_destroy(tl_library *l);
/* Launches the row that was recorded with arguments of these types and these compile-time values; an integer without a
 * type also as another one that has room for it, and tl_float() as fp64. Parameters with a compile-time value may be
 * left open (tl_open), or out at the end: the first row that has the others. Of cfg what counts in tl_compiled_launch.
 * No tuples and descriptors: kernels that take these have a function of their own in NAME.h. TL_ERR_ARGUMENT with a
 * hint: no kernel of this name, or none for these arguments. */
TL_API tl_status tl_library_launch(tl_library *l, const char *kernel, const tl_config *cfg, const tl_arg *args,
				   size_t nargs);

#ifdef __cplusplus
}
#endif

#endif

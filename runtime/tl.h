/* libtl: compile and launch Triton kernels from C.
 *
 *   tl_context *ctx;  tl_module *mod;  tl_kernel *add;
 *   tl_context_create(NULL, &ctx);                          // the default device
 *   tl_module_load(ctx, "add.tl", &mod);
 *   tl_module_kernel(mod, "add_kernel", &add);
 *   tl_launch(add, &(tl_config){.grid = {n_blocks, 1, 1}},
 *             (tl_arg[]){tl_buf(TL_F32, x), tl_buf(TL_F32, y), tl_buf(TL_F32, out), tl_int(n), tl_int(1024)}, 5);
 *
 * A kernel is compiled at its first launch for each combination of argument types, constexpr values and specialisation.
 * Specialisation means: pointers divisible by 16; integers divisible by 16 or 8, and by 256 in kernels with dots;
 * integers equal to 1. A divisor counts only where it can change the code. Each launch checks these facts. Each call
 * that can fail returns a tl_status, and tl_error() returns the message. A context may be used from several threads at
 * once. The library opens the CUDA driver at run time, so a program that uses libtl starts on machines without a
 * driver. */
#ifndef TL_H
#define TL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TL_API __attribute__((visibility("default")))

/* Objects of the library. */
typedef struct tl_context tl_context; /* a device, its memory and the kernels compiled for it */
typedef struct tl_module tl_module;   /* a source file, or a kernel image */
typedef struct tl_kernel tl_kernel;   /* a jit function of a module */
typedef struct tl_buffer tl_buffer;   /* device memory */
typedef struct tl_prepared tl_prepared; /* a handle: compiled variants of a kernel, launched at the lowest cost */
typedef struct tl_event tl_event;     /* a point in the work of a stream */

/* --- errors: versions, statuses and error messages ---------------------------------------------------------------- */

#define TL_VERSION "0.1"
#define TL_VERSION_NUMBER 100 /* 100 for each minor version, 10000 for each major version */
/* The version of the library that the program runs with. A program runs with each later library whose file has the same
 * number, libtl.so.N: functions stay, enumerations grow at their ends only, and structures grow into their `reserved`
 * members. A program must set the members of a structure that it does not use to 0. The library refuses a structure
 * with a member that it does not know. */
TL_API int tl_version(void);
/* The same as text: "0.1". The text is constant. */
TL_API const char *tl_version_text(void);

/* The result of a call. */
typedef enum tl_status {
	TL_OK = 0,
	TL_ERR_COMPILE,   /* the kernel is wrong: tl_error() has diagnostics with source lines */
	/* this call is wrong: the arguments do not fit the kernel, a pointer is NULL, a size is invalid */
	TL_ERR_ARGUMENT,
	TL_ERR_DEVICE,    /* no such device, or no driver */
	TL_ERR_FILE,      /* a file cannot be read */
	TL_ERR_MEMORY,    /* out of device memory or host memory */
	TL_ERR_DRIVER,    /* the driver refused; the driver's message is in the text */
	TL_ERR_KERNEL,    /* the kernel ran and failed: an access outside every buffer, a device_assert */
	/* A bug in libtl or LLVM, which ended this call only; the text has the pass and its IR. If the bug may have
	 * left the context inconsistent, all later calls on the context fail with this status too: destroy the
	 * context. */
	TL_ERR_INTERNAL,
	/* Two programs access the same memory, one of them writes, and nothing orders the accesses (simulator). The
	 * launch has ended and its buffers can be read; the order in which the two accesses happened is undefined. */
	TL_ERR_RACE,
	/* The kernel would have to be compiled, and TL_NO_JIT=1 forbids it; the text has the missing line of a
	 * manifest. */
	TL_ERR_NOT_BUILT,
} tl_status;

/* The message of this thread's last call that returns a tl_status; empty if that call succeeded. Where a source is
 * wrong, the message has its line, a caret and a hint. `ctx` may be NULL. The text is valid until the thread's next
 * such call. */
TL_API const char *tl_error(const tl_context *ctx);
/* The name of a status: "invalid argument". The text is constant. For other numbers it is "unknown status". */
TL_API const char *tl_status_name(tl_status s);

/* The severity of a diagnostic. */
typedef enum tl_severity { TL_SEVERITY_ERROR, TL_SEVERITY_WARNING, TL_SEVERITY_NOTE, TL_SEVERITY_REMARK } tl_severity;

/* A message of an error, or of the compiler. It may grow at its end, so arrays have pointers to diagnostics. */
typedef struct tl_diagnostic {
	tl_severity severity; /* a note belongs to the message before it: it names a call, or an earlier definition */
	const char *file;     /* the name of the source; NULL: the diagnostic has no place in a source */
	uint32_t line, column; /* from 1, the column in bytes; 0 without a file, or if the column is not known */
	const char *text;     /* the message, one line */
	const char *hint;     /* a hint, one line for each if there are several; or NULL */
	const char *shown;    /* the whole diagnostic as tlc prints it, with the source line and a caret */
	uint32_t length;      /* bytes of the source that the message is about, from the column on; 0: not known */
} tl_diagnostic;

/* The last error as a structure, for programs. Unknown members are 0 or NULL. */
typedef struct tl_error_info {
	tl_status status;
	int driver_result;       /* CUDA's CUresult */
	const char *driver_call; /* "cuLaunchKernel" */
	/* The kernel that failed. A kernel on a GPU runs, and fails, after the call that launched it. This is then the
	 * last launched kernel that had not been waited for, and the text says whether other kernels could have failed
	 * too. */
	const char *kernel;
	const char *file; /* of the first error in a source, or of the place where the kernel failed */
	uint32_t line, column; /* from 1; column in bytes */
	const char *text;      /* the text of tl_error */
	/* The error in parts: for TL_ERR_COMPILE all errors and warnings of the call, each followed by its notes. Other
	 * errors are one diagnostic, and perhaps notes. */
	const tl_diagnostic *const *diagnostics;
	size_t ndiagnostics;
} tl_error_info;
/* Describes the last error of this thread. The pointer is valid until the thread's next call that returns a tl_status;
 * it is never NULL. */
TL_API const tl_error_info *tl_error_details(void);

/* --- context: contexts and devices -------------------------------------------------------------------------------- */

/* Creates a context on a device:
 *
 *   "cuda", "cuda:1"     a GPU, through the CUDA driver; "cuda" is GPU 0
 *   "cpu"                native code for this computer's CPU; nothing is checked
 *   "cpu:check"          the same with code that checks each memory access
 *   "interp"             the reference interpreter
 *   "sim", "sim:80" …    a simulator, which runs the PTX for sm_90a, sm_80 … on the CPU and checks it
 *   NULL                 "cuda", or "cpu" if the machine has no CUDA driver or no GPU
 *
 * A driver or a GPU that is present and fails is an error, also with NULL. The caller owns the context, and ends it
 * with tl_context_destroy or tl_context_release. */
TL_API tl_status tl_context_create(const char *device, tl_context **out);
/* Creates a context on the caller's CUcontext; NULL is the CUcontext that is current on this thread. The caller keeps
 * the CUcontext: it is not destroyed with *out. */
TL_API tl_status tl_context_from_cuda(void *cu_context, tl_context **out);
/* For several GPUs: from now on `ctx` and `with` share their compiled kernels, if their devices have the same target
 * and limits; each context loads the code for itself. Any number of contexts may share, and they may be destroyed in
 * any order. Call this before the first launch in `ctx`, and while no other thread uses `ctx`. */
TL_API tl_status tl_context_share(tl_context *ctx, tl_context *with);
/* Waits for the device, then frees the context and its modules, buffers and events. Their handles are invalid from then
 * on: do not use or destroy them. No other thread may use the context. NULL is allowed. */
TL_API void tl_context_destroy(tl_context *ctx);
/* The alternative for objects that are destroyed in any order, as by garbage collectors: the context's handle is
 * invalid from now on, and its modules, buffers and events stay usable until they are destroyed. The context is freed
 * with the last of these. NULL is allowed. */
TL_API void tl_context_release(tl_context *ctx);
/* Waits for everything launched in the context, including launches on the caller's streams. TL_ERR_KERNEL: one of the
 * kernels failed. */
TL_API tl_status tl_synchronize(tl_context *ctx);

/* The description of a device. */
typedef struct tl_device_info {
	char kind[16];       /* "cuda", "interp", "cpu", "sim" */
	char name[128];      /* "NVIDIA H100 80GB HBM3"; the CPU's name for interp and cpu; "simulated sm_90a" */
	char target[32];     /* "cuda:sm_90a"; "cpu:avx2"; "cpu" for interp */
	int num_sms;         /* multiprocessors; CPU threads for interp, cpu and sim */
	size_t shared_bytes; /* the most shared memory of a block; 0 for interp and cpu */
	size_t memory_bytes;
	/* CUDA's compute capability, 10 times the major number plus the minor number: 90; 0 for interp and cpu */
	int capability;
	char spec[32];  /* the name that tl_context_create takes: "cuda:0" */
	uint64_t reserved[8];
} tl_device_info;
/* Describes the device of the context. */
TL_API tl_status tl_device(tl_context *ctx, tl_device_info *out);
/* The devices on which a context can be created, GPUs first. tl_device_count writes their number to *out, and
 * tl_device_at describes device `index`, from 0. No context is created. A driver that is present and fails is an
 * error. */
TL_API tl_status tl_device_count(int *out);
TL_API tl_status tl_device_at(int index, tl_device_info *out);

/* --- callbacks: allocators, threads and callbacks ----------------------------------------------------------------- */

/* These settings apply to later calls. Make them before other threads use the context. */

/* The memory for buffers that the context creates later. The memory is device memory for cuda, else host memory; for
 * host memory `bytes` is more than the size of the buffer, because guard regions surround it. `alloc` returns an
 * address that is a multiple of `alignment`, or NULL if there is no memory. `free` takes the address that `alloc`
 * returned, and the same `bytes`. With NULL for `a` the context allocates memory itself again. */
typedef struct tl_allocator {
	void *(*alloc)(void *user, size_t bytes, size_t alignment);
	void (*free)(void *user, void *p, size_t bytes);
	void *user;
} tl_allocator;
/* Sets the allocator of the context; *a is copied. */
TL_API tl_status tl_context_allocator(tl_context *ctx, const tl_allocator *a);
/* The number of CPU threads of a launch on interp, cpu and sim. 0 means $OMP_NUM_THREADS, or one thread for each CPU of
 * the machine. It has no effect on cuda. */
TL_API tl_status tl_context_threads(tl_context *ctx, int threads);

/* The kinds of texts that the log callback receives. */
typedef enum tl_log_kind {
	TL_LOG_PRINT,  /* output of device_print, in whole lines; without a callback it goes to standard output */
	/* the report that $TL_SIM_REPORT requests, and cpu:check's report of memory that was read back although nothing
	 * wrote it; without a callback it goes to standard error */
	TL_LOG_REPORT,
} tl_log_kind;
/* The log callback. `text` has `len` bytes and a terminating 0, and is valid during the callback only. Several threads
 * may call it at once. It must return, and must not call the library. On cuda the driver writes device_print to
 * standard output itself. */
typedef void tl_log_fn(void *user, tl_log_kind kind, const char *text, size_t len);
/* Sets the log callback, which receives `user`. With NULL for `fn` there is no callback. */
TL_API tl_status tl_context_log(tl_context *ctx, tl_log_fn *fn, void *user);

/* --- diagnostics: diagnostics of the compiler --------------------------------------------------------------------- */

/* The callback for diagnostics. The texts are valid during the callback only. */
typedef void tl_diagnostic_fn(void *user, const tl_diagnostic *d);

/* Sets the callback for diagnostics. It receives each error and warning about modules loaded and kernels compiled in
 * the context from now on, and with `remarks` also each remark: the layout and instruction chosen for each load, store,
 * dot and loop. It runs in the thread that loads or compiles, so several threads may call it at once. It must return.
 * With NULL for `fn` there is no callback. */
TL_API tl_status tl_context_diagnostics(tl_context *ctx, tl_diagnostic_fn *fn, void *user, bool remarks);
/* The warnings of the module since it was loaded, and the errors of its kernels, each once, as tlc prints them; "" if
 * there are none. It does not need a callback. Free the text with tl_free. */
TL_API tl_status tl_module_diagnostics(tl_module *m, char **text);

/* --- memory: buffers and copies ----------------------------------------------------------------------------------- */

/* Creates a buffer of device memory, with undefined contents. A buffer of 0 bytes has a unique address. The context
 * owns the buffer, and frees it at the latest when it is destroyed. TL_ERR_MEMORY: the device or the allocator has not
 * enough memory. */
TL_API tl_status tl_buffer_create(tl_context *ctx, size_t bytes, tl_buffer **out);
/* Frees the buffer; the memory of a wrapped buffer stays the caller's. Wait first for launches and copies that use the
 * memory. NULL is allowed. */
TL_API void tl_buffer_destroy(tl_buffer *b);
/* The device address of the buffer, valid until the buffer is destroyed. NULL for NULL. */
TL_API void *tl_buffer_ptr(const tl_buffer *b);
/* The size of the buffer in bytes. 0 for NULL. */
TL_API size_t tl_buffer_size(const tl_buffer *b);
/* Copy `bytes` bytes from host memory into the buffer and from the buffer to host memory, and set each byte of a
 * buffer. `offset` is in bytes from the start of the buffer. If offset + bytes lies outside the buffer,
 * TL_ERR_ARGUMENT. A copy runs after the launches on the context's own stream, and is complete on return. Work on other
 * streams must be waited for first. If a kernel that was launched before failed, the copy may return its error,
 * TL_ERR_KERNEL. */
TL_API tl_status tl_buffer_write(tl_buffer *b, size_t offset, const void *src, size_t bytes);
TL_API tl_status tl_buffer_read(tl_buffer *b, size_t offset, void *dst, size_t bytes);
TL_API tl_status tl_buffer_fill(tl_buffer *b, uint8_t byte);

/* Creates a buffer of host memory that the device can access too; for cuda the memory is page-locked, so copies from
 * and to it can run asynchronously. The address, tl_buffer_ptr, is valid on the host and on the device. */
TL_API tl_status tl_buffer_create_host(tl_context *ctx, size_t bytes, tl_buffer **out);
/* Creates a buffer of memory that the caller owns and keeps: device memory for cuda, else host memory. The memory must
 * stay valid until the buffer is destroyed. On devices other than cuda it must not overlap other buffers, and on interp
 * and sim an access less than 64 KB outside of the memory is an error. */
TL_API tl_status tl_buffer_wrap(tl_context *ctx, void *p, size_t bytes, tl_buffer **out);

/* Asynchronous copies and fills, queued on `stream`: a CUstream of the caller, or NULL for the context's own stream.
 * The host memory that is read must not change, and the host memory that is written has no new contents, until the
 * stream has executed the copy. The call returns before that only for page-locked host memory, such as that of
 * tl_buffer_create_host. Devices other than cuda have no streams: the copy is complete on return. */
TL_API tl_status tl_buffer_write_async(tl_buffer *b, size_t offset, const void *src, size_t bytes, void *stream);
TL_API tl_status tl_buffer_read_async(tl_buffer *b, size_t offset, void *dst, size_t bytes, void *stream);
/* Copies within a device, or between two devices of the same kind. Source and destination must not overlap. `stream`
 * belongs to the context of `dst`. If `src` belongs to another context, then the host or the stream (tl_event_wait)
 * must have waited for the launches that write `src`. Later launches that overwrite `src`, and its destruction, must
 * wait for the copy. */
TL_API tl_status tl_buffer_copy_async(tl_buffer *dst, size_t dst_offset, const tl_buffer *src, size_t src_offset,
				      size_t bytes, void *stream);
/* Writes `count` copies of *element from `offset` on. `size` is the size of an element, 1, 2, 4 or 8 bytes. The address
 * of the first element must be a multiple of `size`. */
TL_API tl_status tl_buffer_fill_async(tl_buffer *b, size_t offset, const void *element, size_t size, size_t count,
				      void *stream);

/* --- streams: streams and events ---------------------------------------------------------------------------------- */

/* The context's own stream, a CUstream; NULL on devices other than cuda, which have no streams. The context owns the
 * stream, which is valid until the context is destroyed. With tl_context_from_cuda it is the legacy default stream of
 * the caller's CUcontext (CU_STREAM_LEGACY). */
TL_API void *tl_context_stream(tl_context *ctx);
/* Creates an event. The event belongs to its context and is freed with it at the latest. tl_event_destroy allows
 * NULL. */
TL_API tl_status tl_event_create(tl_context *ctx, tl_event **out);
TL_API void tl_event_destroy(tl_event *e);
/* The event stands for the work that is queued on the stream up to this call. `stream` is a CUstream of the caller, or
 * NULL for the context's own stream; TL_ERR_ARGUMENT for a stream on devices other than cuda. */
TL_API tl_status tl_event_record(tl_event *e, void *stream);
/* Work that is queued on the stream after this call waits for the event's last tl_event_record. The host does not wait.
 * `stream`: as for tl_event_record. */
TL_API tl_status tl_event_wait(tl_event *e, void *stream);
/* The host waits for the event's last tl_event_record. */
TL_API tl_status tl_event_synchronize(tl_event *e);
/* Writes the milliseconds between two events of one context to *ms. Both events must have been recorded and waited
 * for. */
TL_API tl_status tl_event_elapsed(const tl_event *from, const tl_event *to, double *ms);

/* --- modules: modules, kernels and their parameters --------------------------------------------------------------- */

/* Loads a source file in Triton's language and parses it. A path that ends in ".ttir" is the text of one kernel's tile
 * IR. A kernel image, as `tlc FILE --emit image` writes it, is recognised by its contents, whatever its name. The
 * kernel of an image takes the parameters that remain at run time: not constexprs, nor integers specialised to 1. A
 * launch with arguments that the image was not compiled for is refused, with the parameter's name. TL_ERR_FILE: the
 * file cannot be read, or the image is damaged or has another version. */
TL_API tl_status tl_module_load(tl_context *ctx, const char *path, tl_module **out);
/* Loads a module from the `len` bytes at `text`, which are copied; `name` is the file name in messages. */
TL_API tl_status tl_module_load_source(tl_context *ctx, const char *name, const char *text, size_t len,
				       tl_module **out);

/* A source text of a module: a file, or a part of one. */
typedef struct tl_source {
	/* The dotted name by which other sources of the module import it: "helpers", "pkg.helpers"; NULL: they do not
	 * import it. In a package's own source, whose file is named __init__.py, it is the name of the package. */
	const char *name;
	const char *file; /* the file name in messages, remarks and debug information */
	/* The number of the text's first line in `file`. 0 is allowed, for a line that precedes the file's own. */
	uint32_t first_line;
	uint32_t indent;  /* bytes that were removed from the start of each line; columns in messages count them */
	const char *text; /* `len` bytes */
	size_t len;
	uint64_t reserved[2];
} tl_source;
/* Loads a module from n source texts, which are copied. sources[0] is the module itself: its jit functions are the
 * kernels. The others are found by its imports and by each other's, before files are searched. A relative import starts
 * from the dotted name of the importing source. TL_ERR_ARGUMENT: two sources have the same name, or a name is not a
 * dotted name or that of a module of the compiler ("math", "triton.language"). */
TL_API tl_status tl_module_load_sources(tl_context *ctx, const tl_source *sources, size_t n, tl_module **out);
/* Frees the module, its kernels and their handles. If kernels of the module were compiled, it first waits for
 * everything launched in the context, because they may be running. No other thread may use the module or its kernels,
 * and its tuners must have been destroyed. NULL is allowed. */
TL_API void tl_module_destroy(tl_module *m);
/* Finds a jit function by its name. The kernel belongs to its module. TL_ERR_ARGUMENT: there is none of this name; the
 * message names a similar one. */
TL_API tl_status tl_module_kernel(tl_module *m, const char *name, tl_kernel **out);

/* A parameter of a kernel. The texts are expressions of the language, and valid as long as the kernel is. */
typedef struct tl_parameter {
	const char *name;
	bool is_constexpr;
	const char *annotation;    /* NULL: none */
	const char *default_value; /* NULL: none, so an argument is required */
} tl_parameter;
/* The number of parameters, constexprs included. 0 for NULL. */
TL_API size_t tl_kernel_parameters(const tl_kernel *k);
/* Describes parameter `index`, from 0; NULL if there is none. Valid as long as the kernel is. */
TL_API const tl_parameter *tl_kernel_parameter(const tl_kernel *k, size_t index);
/* The name of the jit function. Valid as long as the kernel is. NULL for NULL. */
TL_API const char *tl_kernel_name(const tl_kernel *k);

/* --- arguments: arguments of a launch ----------------------------------------------------------------------------- */

/* Types of elements and of numbers. */
typedef enum tl_dtype {
	TL_I1, TL_I8, TL_I16, TL_I32, TL_I64, TL_U8, TL_U16, TL_U32, TL_U64,
	TL_F8E4M3, TL_F8E5M2, TL_F16, TL_BF16, TL_F32, TL_F64,
	TL_F8E4B15,
	TL_F8E4B8, TL_F8E5B16, /* constexprs may be these types; arguments, loads and stores may not */
} tl_dtype;
/* The name of a type in the language: "fp16". The text is constant. For other numbers it is "unknown". */
TL_API const char *tl_dtype_name(tl_dtype t);
/* The bytes of an element in memory; 1 for int1. 0 for other numbers. */
TL_API size_t tl_dtype_size(tl_dtype t);

/* What an argument is. */
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

/* One argument of a launch, constexpr or not, in the order of the parameters. Make it with the functions below. */
typedef struct tl_arg {
	tl_arg_kind kind;
	tl_dtype dtype;  /* of the pointee, integer or float; for TL_ARG_TYPE the value */
	uint64_t typed : 4;  /* 0 for tl_int() and tl_uint(): i32 if the value fits, as in Triton; else 1 */
	uint64_t constant : 4; /* 1: a compile-time value, whatever the parameter is; 2: not specialised */
	/* for a pointer: bytes of memory that the kernel accesses from it on; 0: the whole allocation */
	uint64_t bytes : 56;
	__extension__ union { /* anonymous, which C99 lacks */
		void *ptr;
		int64_t i;
		uint64_t u;
		double f;
		const char *s;
		const tl_tuple *tuple;
		const tl_descriptor *descriptor;
	};
} tl_arg;

/* A device pointer to elements of type t. The size of the memory after the pointer decides whether offsets need 64
 * bits. The size is that of the allocation that the pointer lies in. For memory that the context does not know (host
 * memory that was never wrapped) offsets have 32 bits, unless tl_range gives a larger size. */
static inline tl_arg tl_ptr(tl_dtype t, const void *p)
{
	tl_arg a = {TL_ARG_PTR, t, 1, 0, 0, {0}};
	a.ptr = (void *)(uintptr_t)p;
	return a;
}
/* A device pointer with the number of bytes that the kernel accesses from p on: for a part of a buffer whose other
 * parts are unrelated. The ranges decide which arguments overlap, and so how a kernel that reads through one pointer
 * and writes through another is compiled. */
static inline tl_arg tl_range(tl_dtype t, const void *p, size_t bytes)
{
	tl_arg a = tl_ptr(t, p);
	a.bytes = bytes < 0xFFFFFFFFFFFFFF ? bytes & 0xFFFFFFFFFFFFFF : 0xFFFFFFFFFFFFFF; /* no allocation is larger */
	return a;
}
/* The address of a buffer, with the size of the buffer. */
static inline tl_arg tl_buf(tl_dtype t, const tl_buffer *b) { return tl_range(t, tl_buffer_ptr(b), tl_buffer_size(b)); }
/* An integer: i32, or i64 if the value does not fit; or the value of a constexpr parameter. */
static inline tl_arg tl_int(int64_t i)
{
	tl_arg a = {TL_ARG_INT, TL_I32, 0, 0, 0, {0}};
	a.i = i;
	return a;
}
/* An integer of type t, which must be able to hold it. */
static inline tl_arg tl_int_typed(tl_dtype t, int64_t i)
{
	tl_arg a = {TL_ARG_INT, t, 1, 0, 0, {0}};
	a.i = i;
	return a;
}
/* An integer from 0 to 2^64 - 1: i32, or i64 if the value does not fit, and u64 from 2^63 on. */
static inline tl_arg tl_uint(uint64_t u)
{
	tl_arg a = {TL_ARG_UINT, TL_I32, 0, 0, 0, {0}};
	a.u = u;
	return a;
}
/* An unsigned value of the integer type t, which must be able to hold it. */
static inline tl_arg tl_uint_typed(tl_dtype t, uint64_t u)
{
	tl_arg a = {TL_ARG_UINT, t, 1, 0, 0, {0}};
	a.u = u;
	return a;
}
/* A floating-point number, passed as fp32; or the value of a constexpr parameter. */
static inline tl_arg tl_float(double f)
{
	tl_arg a = {TL_ARG_FLOAT, TL_F32, 1, 0, 0, {0}};
	a.f = f;
	return a;
}
/* A floating-point number of type t, rounded to it. */
static inline tl_arg tl_float_typed(tl_dtype t, double f)
{
	tl_arg a = {TL_ARG_FLOAT, t, 1, 0, 0, {0}};
	a.f = f;
	return a;
}
/* A truth value, int1. */
static inline tl_arg tl_bool(bool b)
{
	tl_arg a = {TL_ARG_BOOL, TL_I1, 1, 0, 0, {0}};
	a.i = b;
	return a;
}
/* None, for example for a pointer that the kernel does not use. */
static inline tl_arg tl_none(void)
{
	tl_arg a = {TL_ARG_NONE, TL_I32, 0, 0, 0, {0}};
	return a;
}
/* Marks a parameter that this call leaves open. The parameter gets its default, or the value that the kernel's
 * decorators or a tuner give it, like parameters after the last argument. */
static inline tl_arg tl_open(void)
{
	tl_arg a = {TL_ARG_OPEN, TL_I32, 0, 0, 0, {0}};
	return a;
}
/* A string, for constexpr parameters. The text must be valid during the call. */
static inline tl_arg tl_str(const char *s)
{
	tl_arg a = {TL_ARG_STR, TL_I8, 1, 0, 0, {0}};
	a.s = s;
	return a;
}
/* A dtype, for constexpr parameters. */
static inline tl_arg tl_type(tl_dtype t)
{
	tl_arg a = {TL_ARG_TYPE, t, 1, 0, 0, {0}};
	return a;
}
/* A jit function of the same module by its name, for constexpr parameters; or another value to which the module binds a
 * global name. The name must be valid during the call. */
static inline tl_arg tl_func(const char *name)
{
	tl_arg a = {TL_ARG_FUNC, TL_I8, 1, 0, 0, {0}};
	a.s = name;
	return a;
}

/* The argument as a compile-time value, also where the parameter is not tl.constexpr. The argument is a number, for
 * which the kernel is then compiled, or a string or dtype in a tuple; not a pointer, tuple or descriptor. */
static inline tl_arg tl_constexpr(tl_arg a)
{
	a.constant = 1;
	return a;
}

/* The argument without specialisation, like do_not_specialize of jit for a parameter: the code depends on the
 * argument's type only, not on its value or address. The argument may be an element of a tuple, but not a tuple or a
 * descriptor. */
static inline tl_arg tl_unspecialized(tl_arg a)
{
	a.constant = 2;
	return a;
}

/* A tuple. Its elements may be tuples and descriptors too. In the kernel it is x[i], or x.name for a named tuple.
 * Each element is an argument with its type and its specialisation, None or a function. Strings and dtypes are
 * compile-time values. A tuple for a tl.constexpr parameter has compile-time values only. */
struct tl_tuple {
	size_t len;
	const tl_arg *items;
	const char *const *names; /* of a named tuple: its `len` fields; else NULL */
};
/* The tuple and the memory it points to must not change during the call. */
static inline tl_arg tl_tuple_arg(const tl_tuple *t)
{
	tl_arg a = {TL_ARG_TUPLE, TL_I8, 1, 0, 0, {0}};
	a.tuple = t;
	return a;
}

enum { TL_MAX_RANK = 5 };

/* A tensor in device memory, and the shape of the blocks that a kernel loads and stores: in the kernel it is a
 * tl.make_tensor_descriptor(…). A launch refuses a tensor that a TMA tensor map cannot describe, with
 * TL_ERR_ARGUMENT. */
struct tl_descriptor {
	tl_dtype dtype;
	int rank;                     /* 1 to TL_MAX_RANK */
	const void *base;             /* device address, divisible by 16 */
	int64_t shape[TL_MAX_RANK];   /* elements, outermost dimension first: 1 to 2^31 - 1 */
	/* in elements, by dimension: the last stride is 1, and the others are a multiple of 16 bytes */
	int64_t strides[TL_MAX_RANK];
	/* in elements: powers of two, with a product of at most 2^20; the last dimension has at least 16 bytes */
	int32_t block_shape[TL_MAX_RANK];
	bool pads_with_nan;           /* outside the tensor a load gives NaN instead of 0; for floats */
	bool rounds_to_tf32;          /* loads round to the nearest tf32, ties to even; for fp32 */
};
/* A descriptor of a contiguous row-major tensor. `shape` and `block_shape` have `rank` elements. If the strides
 * overflow 63 bits or the rank is not 1 to TL_MAX_RANK, then launches refuse the descriptor. */
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
		/* 1 after an overflow: a launch refuses it, because it is not a multiple of 16 bytes */
		stride = shape[i] > 0 && stride <= INT64_MAX / shape[i] ? stride * shape[i] : 1;
	}
	return d;
}
/* The descriptor must not change during the call, and the tensor must stay valid until the kernel has finished. */
static inline tl_arg tl_desc(const tl_descriptor *d)
{
	tl_arg a = {TL_ARG_DESCRIPTOR, TL_I8, 1, 0, 0, {0}};
	a.descriptor = d;
	return a;
}

/* --- bindings: arguments for other languages ---------------------------------------------------------------------- */

/* The inline functions for arguments as functions of the library, for languages that cannot use a C header. Each
 * function writes to *out what the inline function of that name returns: tl_arg_int writes the argument of tl_int. A
 * tl_arg can be opaque then: an element of an array of arguments has tl_struct_size("tl_arg") bytes, and the alignment
 * of a pointer. The pointers must not be NULL. */
TL_API void tl_arg_ptr(tl_arg *out, tl_dtype t, const void *p);
TL_API void tl_arg_range(tl_arg *out, tl_dtype t, const void *p, size_t bytes);
TL_API void tl_arg_buf(tl_arg *out, tl_dtype t, const tl_buffer *b);
TL_API void tl_arg_int(tl_arg *out, int64_t i);
TL_API void tl_arg_int_typed(tl_arg *out, tl_dtype t, int64_t i);
TL_API void tl_arg_uint(tl_arg *out, uint64_t u);
TL_API void tl_arg_uint_typed(tl_arg *out, tl_dtype t, uint64_t u);
TL_API void tl_arg_float(tl_arg *out, double f);
TL_API void tl_arg_float_typed(tl_arg *out, tl_dtype t, double f);
TL_API void tl_arg_bool(tl_arg *out, bool b);
TL_API void tl_arg_none(tl_arg *out);
TL_API void tl_arg_open(tl_arg *out);
TL_API void tl_arg_str(tl_arg *out, const char *s);
TL_API void tl_arg_type(tl_arg *out, tl_dtype t);
TL_API void tl_arg_func(tl_arg *out, const char *name);
TL_API void tl_arg_tuple(tl_arg *out, const tl_tuple *t);
TL_API void tl_arg_desc(tl_arg *out, const tl_descriptor *d);
/* Change *a as tl_constexpr and tl_unspecialized do. */
TL_API void tl_arg_constexpr(tl_arg *a);
TL_API void tl_arg_unspecialized(tl_arg *a);
/* Writes to *out the descriptor that tl_describe returns. */
TL_API void tl_arg_describe(tl_descriptor *out, tl_dtype t, const void *base, int rank, const int64_t *shape,
			    const int32_t *block_shape);

/* The members of an argument without bit-fields, for a tl_plan_fn that reads its arguments. */
typedef struct tl_arg_members {
	tl_arg_kind kind;
	tl_dtype dtype;
	int32_t typed, constant;
	uint64_t bytes;
	uint64_t value; /* the bits of the pointer, integer or double */
} tl_arg_members;
/* Reads the members of *a. */
TL_API void tl_arg_read(const tl_arg *a, tl_arg_members *out);
/* The bytes of the structure of this name, "tl_config", in this version of the library: a binding that lays out
 * structures itself compares its sizes when it is loaded. 0: there is no such structure. */
TL_API size_t tl_struct_size(const char *name);

/* --- launch: launching and preparing kernels ---------------------------------------------------------------------- */

/* The properties of arguments that a variant is compiled for. */
typedef enum tl_specialization {
	TL_SPECIALIZE_USEFUL, /* by the properties of arguments that can change the code */
	TL_SPECIALIZE_NONE,   /* by types and compile-time values only: one variant for all values and addresses */
} tl_specialization;

/* Contraction of a multiplication and an addition of a kernel to one fused multiply-add, which rounds once. Off, every
 * device computes x * y + z with two roundings; tl.fma, dots and math functions do not change. Off is Triton's
 * enable_fp_fusion=False. */
typedef enum tl_fp_fusion {
	TL_FP_FUSION_DEFAULT, /* as TL_FP_FUSION_ON */
	TL_FP_FUSION_ON,
	TL_FP_FUSION_OFF,
} tl_fp_fusion;

/* Whether exp, exp2, sqrt, rsqrt and the fast_ functions of fp32 on a GPU take subnormal numbers as 0 and return 0 for
 * them. Off is Triton's enable_reflect_ftz=False. Other operations and devices keep subnormal numbers. */
typedef enum tl_ftz {
	TL_FTZ_DEFAULT, /* as TL_FTZ_ON */
	TL_FTZ_ON,
	TL_FTZ_OFF,
} tl_ftz;

/* The launcher that tl_kernel_dump writes code for. */
typedef enum tl_abi {
	TL_ABI_LIBTL,
	/* Triton's launcher: parameters in its order, descriptors as tensor maps or in parts, any sizes, overlap and
	 * grid. The stage "metadata" states what it must know. Only tl_kernel_dump takes it. */
	TL_ABI_TRITON,
} tl_abi;

/* The options of a launch. A member that is 0 has its default. */
typedef struct tl_config {
	uint32_t grid[3]; /* programs along each axis; see grid_dims */
	int num_warps;    /* a power of two, 1 to 32; 0: 4 */
	int num_stages;   /* stages of software pipelining; 0: 3 */
	/* Rows of a group in which a two-dimensional grid is walked, for L2 reuse. 1: no groups. 0: 16 on a GPU for
	 * large grids of GEMMs whose rows and columns share their loads, else no groups. At most 1048576. */
	int group_pids;
	/* device_assert stops the kernel on a GPU too (on interp it always does), and so does an integer overflow */
	bool debug;
	/* The caller's CUstream. NULL: the context's own stream, which synchronises with CUDA's legacy default stream,
	 * as streams created without flags do. */
	void *stream;
	/* The most blocks (CTAs) of a persistent kernel, whose blocks run several programs each: GEMMs with more
	 * programs than the GPU has multiprocessors. 0: the number of multiprocessors (132 on sim). -1: a block for
	 * each program. */
	int max_ctas;
	/* The number of axes of `grid` that are set, 1 to 3. The other axes count as 1, and a 0 along an axis that is
	 * set means that nothing runs. 0: x is set, and each axis before an axis that is not 0; so {3} is 3 programs
	 * and {0} none. */
	int grid_dims;
	/* All blocks of the grid are on the GPU at the same time, so that they may wait for one another. A grid that
	 * does not fit the GPU is refused. interp, cpu and sim refuse a grid of several programs, because they run one
	 * after another. */
	bool launch_cooperative_grid;
	/* Programmatic dependent launch: the kernel may begin when the kernels before it on the stream have called
	 * tl.extra.cuda.gdc_launch_dependents() or ended. It must call gdc_wait() before it reads their results. On
	 * sm_90; on other GPUs, interp, cpu and sim the kernel begins after those kernels have ended. */
	bool launch_pdl;
	tl_specialization specialization; /* which variants are compiled; for one argument: tl_unspecialized */
	/* The most registers of a thread, 1 to 256 (a GPU gives 24 to 255). Further values are spilled to memory, so
	 * that more blocks fit a multiprocessor. 0: ptxas decides. */
	int maxnreg;
	tl_ftz ftz;             /* subnormal numbers of fp32 in math functions of a GPU */
	int wraps;              /* not 0: with `debug`, integers may overflow nevertheless */
	tl_fp_fusion fp_fusion; /* contraction to fused multiply-adds */
	tl_abi abi;             /* for tl_kernel_dump: the launcher of the dumped code */
	uint64_t reserved[1];
} tl_config;

/* Launches the kernel, and compiles it first if there is no variant for these arguments. A grid of no programs runs
 * nothing. `args` has `nargs` arguments in the order of the parameters, constexprs included; arguments that are left
 * out at the end are open (tl_open). Several threads may launch a kernel at once. TL_ERR_COMPILE: the kernel is wrong
 * for these arguments. TL_ERR_ARGUMENT: an argument or an option does not fit. TL_ERR_KERNEL and TL_ERR_RACE: the
 * kernel failed; on CUDA a later call that waits returns this. On CUDA it returns before the kernel has finished, and
 * the caller's device pointers and buffers must stay valid until then. While cfg->stream is captured into a CUDA graph
 * nothing can be compiled or loaded: TL_ERR_ARGUMENT if that is necessary, so call tl_prepare before. */
TL_API tl_status tl_launch(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs);
/* Compiles without launching, so that launches like this one compile nothing. cfg->grid counts: GEMMs have separate
 * variants for grids of more programs than multiprocessors. cfg may be NULL, for the defaults.
 *
 * If `out` is not NULL, it also creates a handle, whose launches have the lowest cost and never compile. The handle
 * holds the variant for these arguments, and if that variant uses TMA tensor maps also a variant without them, for rows
 * that a tensor map cannot describe. The handle belongs to the kernel, and is freed with the module at the latest. */
TL_API tl_status tl_prepare(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_prepared **out);
/* Adds the variants for these arguments to the handle. `grid`: programs along each axis; NULL: the grid of tl_prepare's
 * config. Other threads may launch through the handle meanwhile. */
TL_API tl_status tl_prepared_add(tl_prepared *p, const uint32_t grid[3], const tl_arg *args, size_t nargs);
/* Launches the handle's most specialised variant that these arguments allow. `args` includes constexprs, as in
 * tl_launch. If 16 divided an argument of tl_prepare, it must divide this argument; constants, None and integers equal
 * to 1 must be equal; other numbers may have any value of their parameter's type. If no variant fits, TL_ERR_ARGUMENT
 * names the argument or the condition that does not hold. `grid`: programs along each axis, NULL for the grid of
 * tl_prepare's config; with a 0 in it nothing runs. `stream`: as in tl_config. */
TL_API tl_status tl_prepared_launch(const tl_prepared *p, const uint32_t grid[3], void *stream, const tl_arg *args,
				    size_t nargs);
/* No other thread may be launching through the handle. Kernels that have been launched continue to run. NULL is
 * allowed. */
TL_API void tl_prepared_destroy(tl_prepared *p);

/* --- measure: times, dumps and resources of kernels --------------------------------------------------------------- */

/* Measures the median time of a launch, in milliseconds, of `repeats` timed launches (1 to 1000000) after `warmup`
 * launches that are not timed. It waits for all of them. On CUDA the L2 cache is flushed before each launch; if there
 * is no memory for that, TL_OK is returned and tl_error() has a note. */
TL_API tl_status tl_time(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup, int repeats,
			 double *median_ms);
/* Measures the time of each of the `repeats` launches, in order, in milliseconds. `ms` has `repeats` elements. */
TL_API tl_status tl_time_each(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup,
			      int repeats, double *ms);
/* Compiles the kernel and writes a stage of the compilation, as text, to *text:
 *
 *   "ttir", "ttgir", "llir", "ptx"   the IR or PTX of that stage
 *   "remarks"    the choices for each load, store, dot, reduction and loop, with source lines, and the reason where a
 *                choice is not the fastest; on CUDA also the kernel's resources
 *   "schedule"   the steps of each pipelined loop, a table for each
 *   "metadata"   with TL_ABI_TRITON: a JSON object for Triton's launcher, with Triton's names: name, num_warps,
 *                num_ctas, shared (bytes), tensordesc_meta, …
 *   "calls"      the calls of built-in functions with the names of their arguments, a line for each
 *   "accesses"   the memory that the kernel accesses, a line for each pointer among its parameters: "x: read",
 *                "y: read written", "z:" for a pointer that it does not use
 *
 * interp has "ttir" and "calls" only. cfg may be NULL. Free the text with tl_free. */
TL_API tl_status tl_kernel_dump(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, const char *stage,
				char **text);
/* Frees a text that tl_kernel_dump, tl_module_diagnostics or tl_tuner_report returned. NULL is allowed. */
TL_API void tl_free(void *p);

/* The resources of a launch on a multiprocessor. */
typedef struct tl_resources {
	int registers;       /* of a thread; 0: unknown (sim) */
	size_t local_bytes;  /* local memory of a thread; more than 0 if registers are spilled */
	int threads;         /* of a block */
	size_t shared_bytes; /* of a block */
	int blocks;          /* of a program: more than 1 if it runs on a cluster */
	int resident;        /* blocks that a multiprocessor holds at once; 0: unknown (sim, clusters) */
	uint64_t reserved[4];
} tl_resources;
/* The resources of a launch like this one, compiled if needed. All members are 0 on interp. cfg may be NULL. */
TL_API tl_status tl_kernel_resources(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
				     tl_resources *out);

/* An estimate of a launch on a GPU, made from the kernel's IR and the values of its integer arguments, without code
 * generation and without the GPU. It serves to compare configurations of a kernel; the times themselves are rough. The
 * demands are those of an average block on the units of a multiprocessor, in cycles. */
typedef struct tl_estimate {
	double us;      /* of the launch */
	double blocks;  /* of the launch */
	int resident;   /* blocks that a multiprocessor holds at once */
	int unused;
	double tensor;  /* tensor cores */
	double shared;  /* shared memory and L1 */
	double issue;   /* issue of instructions */
	double special; /* special functions, such as exp2 */
	double l2;      /* transfers between the multiprocessor and L2 */
	double bytes;   /* of these transfers */
	double alone;   /* the duration of a block that shares its multiprocessor with no other block */
	uint64_t reserved[4];
} tl_estimate;
/* Estimates a launch. TL_ERR_ARGUMENT: the device is neither cuda nor sim, or the kernel is compiled already. After an
 * error *out is 0. */
TL_API tl_status tl_kernel_estimate(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
				    tl_estimate *out);

/* --- tuning: the choice of a configuration ------------------------------------------------------------------------ */

/* A tuner launches a kernel with its fastest configuration. At the first launch for each key it runs all configurations
 * on the arguments of that launch: those of the kernel's decorators (triton.autotune), and those added here. Afterwards
 * it restores the memory that the kernel writes. It stores its choices on disk with the compiled kernels, for other
 * processes. */
typedef struct tl_tuner tl_tuner;

/* Members that are 0 have the value of the kernel's decorator, or else the default given here. */
typedef struct tl_tuning {
	/* Names of parameters. A choice applies to launches with equal values of these parameters, the same types of
	 * all pointers and the same compile-time values. Other arguments may differ. */
	const char *const *keys;
	size_t nkeys;
	const char *const *reset; /* pointers whose memory is set to 0 before each run */
	size_t nreset;
	/* pointers whose memory is restored before each run, even if the kernel seems not to read it */
	const char *const *restore;
	size_t nrestore;
	/* milliseconds that a configuration runs before it is timed, and while it is timed; defaults 5 and 10 */
	int warmup_ms, rep_ms;
	/* milliseconds after which a configuration fails, on devices that can tell; default 10000 */
	int limit_ms;
	int threads;           /* threads that compile; 0: the number of CPUs */
	bool again;            /* run the configurations although a choice is on disk */
	bool check;            /* compare the results of each configuration with the results of the first */
	double tolerance;      /* the allowed |x - first| is this times (1 + |first|); 0: the results must be equal */
	/* On CUDA, a program and its arguments, the last followed by NULL. Configurations run in a process of this
	 * program, with copies of the memory of the arguments. The program calls tl_tuner_serve(0), as `tlc serve`
	 * does. A configuration that fails or does not end ends this process, and a new process runs the other
	 * configurations. NULL: configurations run in this context, which such a configuration makes unusable. The
	 * process does not have the memory that pointers in memory point to. */
	const char *const *helper;
	/* Compile and run only so many configurations: those that a model of the GPU expects to be the fastest. With 1
	 * nothing runs. 0: all. */
	int most;
	int unused; /* 0 */
	uint64_t reserved[6];
} tl_tuning;

/* Creates a tuner with options `t`, whose texts are copied; NULL: the defaults. The caller owns the tuner, and must
 * destroy it before the kernel's module, when no other thread uses it. tl_tuner_destroy allows NULL. TL_ERR_ARGUMENT: a
 * name is not a parameter. */
TL_API tl_status tl_tuner_create(tl_kernel *k, const tl_tuning *t, tl_tuner **out);
TL_API void tl_tuner_destroy(tl_tuner *t);

/* For the helper's program: serves the tuner at the other end of the socket until the tuner closes it. Call it before
 * all other use of CUDA, and end the process afterwards with _exit, because a kernel that never ends may be running. */
TL_API void tl_tuner_serve(int socket);

/* A value of a configuration. */
typedef struct tl_named_arg {
	const char *name; /* of a parameter */
	tl_arg value;     /* a compile-time value */
} tl_named_arg;
/* Adds a configuration: values for parameters that launches leave open, and the members num_warps, num_stages,
 * group_pids, max_ctas, maxnreg, fp_fusion and ftz of `options` that are not 0. `options` may be NULL. The values are
 * copied. Call it before the first launch, and not from several threads at once. TL_ERR_ARGUMENT: a name is not a
 * parameter, a value does not fit it, or the tuner has been used. */
TL_API tl_status tl_tuner_add(tl_tuner *t, const tl_config *options, const tl_named_arg *values, size_t n);

/* Completes a configuration to a launch. *cfg has the options of the configuration. `args` has a value for each of the
 * `nargs` parameters of the kernel, including the values of the configuration and of heuristics. The function sets
 * cfg->grid, and all else that depends on the configuration, such as the block shape of descriptors. It is called for
 * each configuration and at each launch. If it returns a status other than TL_OK, the configuration is not run. */
typedef tl_status tl_plan_fn(void *user, tl_config *cfg, tl_arg *args, size_t nargs);

/* Launches like tl_launch, with the fastest configuration. The options of the configuration override those of cfg.
 * Leave the parameters that configurations set open: tl_open(). If `plan` is NULL, the grid is that of cfg. Several
 * threads may launch at once: threads with a new key wait while a configuration is chosen. TL_ERR_COMPILE,
 * TL_ERR_KERNEL and others, of the first failure: no configuration can run. */
TL_API tl_status tl_tuner_launch(tl_tuner *t, const tl_config *cfg, tl_plan_fn *plan, void *user, const tl_arg *args,
				 size_t nargs);

/* A chosen configuration. */
typedef struct tl_choice {
	const char *text;  /* "BLOCK=128 num_warps=8"; valid until the tuner is destroyed */
	tl_config config;  /* of the launch */
	/* milliseconds of a launch, or on sim estimated cycles; 0: there was only one configuration */
	double cost;
	int tried, failed; /* numbers of configurations that ran and that failed; both 0 if the choice was on disk */
	bool stored;       /* the choice was on disk */
	uint64_t reserved[4];
} tl_choice;
/* Chooses like tl_tuner_launch, without the launch. `out` may be NULL. After an error *out is 0. */
TL_API tl_status tl_tuner_choose(tl_tuner *t, const tl_config *cfg, tl_plan_fn *plan, void *user, const tl_arg *args,
				 size_t nargs, tl_choice *out);
/* The result of each configuration, as JSON: an array with an object for each key that was tuned, in the order of
 * tuning. "equal_within": the configuration's time cannot be distinguished from the best time. The two differ by at
 * most this fraction; null if there are too few measurements. If tl_tuning.most is set: "rank", 1 for the configuration
 * that is expected to be the fastest, and "estimate", the members of tl_estimate. Free the text with tl_free. */
TL_API tl_status tl_tuner_report(tl_tuner *t, char **json);

/* --- aot: kernels compiled ahead of time -------------------------------------------------------------------------- */

/* `tlc build FILE -o NAME` writes NAME.h and NAME.c. NAME.h declares for each kernel a function that loads it and a
 * function that launches it, with parameters of the kernel's types. NAME.c has the kernel images. They call the
 * functions below, and link with libtl or with the smaller libtlrt, which has these functions, contexts and buffers. */

/* A kernel's images for one architecture, loaded on a device. It is immutable: several threads may launch it at
 * once. */
typedef struct tl_compiled tl_compiled;
/* Bytes of a kernel image. */
typedef struct tl_blob {
	const void *bytes;
	size_t size;
} tl_blob;
/* Loads the images that fit the device best: all variants for its architecture, or for the nearest older one. `images`
 * may have several variants; a launch takes the first variant that its arguments allow. The context owns *out. The
 * images are copied. TL_ERR_DEVICE: there are none for this device. TL_ERR_ARGUMENT: an image is damaged or has
 * another version. */
TL_API tl_status tl_compiled_load(tl_context *ctx, const tl_blob *images, size_t n, tl_compiled **out);
/* Waits for everything launched in the context, then frees the kernel, which no other thread may use. NULL is allowed.
 * Without this call the context frees the kernel. */
TL_API void tl_compiled_destroy(tl_compiled *c);
/* Launches the kernel. cfg: the members grid, grid_dims, stream, max_ctas and launch_… are used. args: the value of
 * each parameter in its low bytes, and 0 for compile-time values. */
TL_API tl_status tl_compiled_launch(tl_compiled *c, const tl_config *cfg, const uint64_t *args, size_t nargs);

/* A row of the table NAME_table[NAME_table_len] that `tlc build MANIFEST -o NAME` writes, for programs that find
 * kernels by name. */
typedef struct tl_built {
	const char *kernel;
	/* The types of the arguments, and compile-time values as the language writes them, by parameter: "x_ptr=*fp32,
	 * y_ptr=None, n=i32, BLOCK=1024". */
	const char *arguments;
	tl_status (*load)(tl_context *ctx, tl_compiled **out); /* the function that NAME.h declares */
} tl_built;

/* The kernels of such a table, launched by name with arguments as in tl_launch. A row is loaded at its first launch. */
typedef struct tl_library tl_library;
/* Creates a library. `table` has n rows, and must stay valid as long as the library. The context owns the library. */
TL_API tl_status tl_library_create(tl_context *ctx, const tl_built *table, size_t n, tl_library **out);
/* Waits for everything launched in the context, then frees the library, which no other thread may use. NULL is allowed.
 * Without this call the context frees the library. */
TL_API void tl_library_destroy(tl_library *l);
/* Launches the row with arguments of these types and these compile-time values. An integer without a type also matches
 * a row with another integer type that can hold its value, and tl_float() matches fp64. A parameter with a compile-time
 * value may be left open (tl_open), or omitted at the end: then the first row with the other arguments is launched.
 * cfg: the members that tl_compiled_launch uses. Tuples and descriptors are refused: kernels that take them have a
 * function in NAME.h. TL_ERR_ARGUMENT with a hint: there is no kernel of this name, or none for these arguments. */
TL_API tl_status tl_library_launch(tl_library *l, const char *kernel, const tl_config *cfg, const tl_arg *args,
				   size_t nargs);

#ifdef __cplusplus
}
#endif

#endif

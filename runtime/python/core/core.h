/* The extension module libtl._core: contexts, modules and kernels of libtl as Python objects, the conversion of Python
 * arguments, and the launch path. Python's limited API of version 3.10 is used, so that one file serves later versions
 * too. */
#ifndef LIBTL_CORE_H
#define LIBTL_CORE_H

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "runtime/tl.h"

enum { MAX_ARGS = 256 };

/* Stores a new reference, and releases the old reference. */
#define replace(at, new_reference)                                                                                     \
	do {                                                                                                           \
		PyObject *former = (at);                                                                               \
		(at) = (new_reference);                                                                                \
		Py_XDECREF(former);                                                                                    \
	} while (0)

/* Names that are looked up often, and types of the module. */
struct core_names {
	PyObject *untyped_storage, *nbytes, *data_ptr, *fields, *exchange_api, *array_struct, *base, *ctypes,
		*kernel_method, *run_method;
};
extern struct core_names names;
extern PyTypeObject *arg_type, *kernel_type, *launcher_type, *call_type;

/* --- objects.c: contexts, modules, kernels ------------------------------------------------------------------------ */

/* A kernel of a module. It keeps the module, and so the context. */
struct kernel_object {
	PyObject_HEAD tl_kernel *kernel;
	PyObject *module;
};

int objects_init(PyObject *module);
/* The context of a kernel. */
tl_context *context_of(const struct kernel_object *k);
/* Raises the exception for the thread's last error of libtl. Returns NULL. */
PyObject *raise_status(tl_status s);

/* --- arguments.c: Python objects as arguments --------------------------------------------------------------------- */

/* A device of memory. */
enum place { PLACE_ANY, PLACE_HOST, PLACE_CUDA };

/* The arguments of one call. Composite arguments live in memory that arguments_free releases. */
struct arguments {
	tl_arg at[MAX_ARGS];
	Py_ssize_t len;
	void **blocks; /* of tuples */
	Py_ssize_t nblocks;
	PyObject **kept; /* objects with texts and descriptors that arguments refer to */
	Py_ssize_t nkept;
	enum place place;                                                 /* of the first pointer */
	int device;                                                       /* PLACE_CUDA: the index of the GPU */
	int (*stream_of)(int device_type, int32_t device, void **stream); /* the library's current stream; or NULL */
	bool is_read_only; /* memory of an argument must not be written: Python code compares that with the kernel */
};

/* Converts an object, and appends it to `a`. 1: done. 0: Python code must convert this type. -1: an
 * exception is set. */
int arguments_add(struct arguments *a, PyObject *o);
/* No arguments. */
void arguments_start(struct arguments *a);
void arguments_free(struct arguments *a);
int arguments_init(PyObject *module);

/* An argument that Python code has converted: libtl._core.Arg. `keep` owns the memory that the argument refers to. */
struct arg_object {
	PyObject_HEAD tl_arg arg;
	enum place place;
	int device;
	int (*stream_of)(int device_type, int32_t device, void **stream); /* as in struct arguments */
	tl_descriptor descriptor;
	PyObject *keep;
	bool is_read_only; /* the memory must not be written */
};

/* --- variant.c: the variants that a launcher has launched --------------------------------------------------------- */

/* Of a parameter: a compile-time value; without specialisation; specialised for the value 1 only. */
enum { PARAMETER_CONSTEXPR = 1, PARAMETER_UNSPECIALIZED = 2, PARAMETER_ANY_ALIGNMENT = 4 };

/* A set of hashes. */
struct variants {
	uint64_t *slots; /* 0: empty */
	size_t len, size;
};

/* The hash of a launch's variant; not 0. `flags` has a byte for each argument. */
uint64_t variant_of(const struct arguments *a, const char *flags, const tl_config *c);
bool variants_have(const struct variants *v, uint64_t h);
void variants_add(struct variants *v, uint64_t h);
void variants_clear(struct variants *v);

/* --- launcher.c: the launch path ---------------------------------------------------------------------------------- */

int launcher_init(PyObject *module);
/* Sets the options of a launch from a dict. Names that are not options are ignored. */
int config_from_options(tl_config *c, PyObject *options);
/* The programs along axis `index` of a grid. */
int take_axis(PyObject *o, int index, uint32_t *out);

/* --- runner.c: launches with known types -------------------------------------------------------------------------- */

int runner_init(PyObject *module);

#endif

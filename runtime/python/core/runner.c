/* The launch of a kernel that was compiled for given types, as the code that TorchInductor writes makes it:
 *
 *   run(grid_0, grid_1, grid_2, stream, function, metadata, launch_metadata, enter_hook, exit_hook, *arguments)
 *
 * A runner knows the type of each parameter, so an integer has the type that the kernel was compiled for, whatever its
 * value is. Arguments of constant parameters are ignored. */
#include "core.h"

#include <string.h>

static PyTypeObject *runner_type;

enum { LEADING = 9 }; /* arguments before the kernel's own */

/* The byte of a parameter. Its kind is any value, a pointer or a number of the dtype in the low bits, or a
 * constant. The code does not depend on the value or the address of an unspecialized parameter. */
enum {
	PARAM_DTYPE = 31,
	PARAM_KIND = 96,
	PARAM_POINTER = 32,
	PARAM_NUMBER = 64,
	PARAM_CONSTANT = 96,
	PARAM_UNSPECIALIZED = 128,
};

struct runner {
	PyObject_HEAD
	struct kernel_object *kernel;
	PyObject *types;  /* bytes, one for each parameter */
	PyObject *values; /* a tuple: the values of constants */
	tl_config config;
	int device; /* the index of the GPU; -1: the host */
};

/* Gives a number the parameter's type. */
static int set_number_type(tl_arg *a, tl_dtype t, Py_ssize_t index)
{
	bool is_integer = a->kind == TL_ARG_INT || a->kind == TL_ARG_UINT || a->kind == TL_ARG_BOOL;
	if (is_integer && t == TL_I1)
		*a = tl_bool(a->i != 0);
	else if (is_integer && t >= TL_F8E4M3)
		*a = tl_float_typed(t, a->kind == TL_ARG_UINT ? (double)a->u : (double)a->i);
	else if (is_integer)
		*a = a->kind == TL_ARG_UINT ? tl_uint_typed(t, a->u) : tl_int_typed(t, a->i);
	else if (a->kind == TL_ARG_FLOAT && t >= TL_F8E4M3)
		*a = tl_float_typed(t, a->f);
	else {
		PyErr_Format(PyExc_TypeError, "argument %zd is not a number that fits %s", index, tl_dtype_name(t));
		return -1;
	}
	return 0;
}

static int add_argument(struct arguments *a, PyObject *o, int type)
{
	Py_ssize_t at = a->len;
	int done = arguments_add(a, o);
	if (!done)
		PyErr_Format(PyExc_TypeError, "argument %zd, of type %R, cannot be passed to a kernel", at,
			     (PyObject *)Py_TYPE(o));
	if (done <= 0)
		return -1;
	tl_arg *arg = &a->at[at];
	if ((type & PARAM_KIND) == PARAM_POINTER && arg->kind == TL_ARG_PTR)
		arg->dtype = (tl_dtype)(type & PARAM_DTYPE);
	if ((type & PARAM_KIND) == PARAM_NUMBER && set_number_type(arg, (tl_dtype)(type & PARAM_DTYPE), at))
		return -1;
	if (type & PARAM_UNSPECIALIZED && (arg->kind == TL_ARG_PTR || arg->kind == TL_ARG_INT ||
					   arg->kind == TL_ARG_UINT))
		arg->constant = 2;
	return 0;
}

static int add_arguments(const struct runner *r, struct arguments *a, PyObject *const *given, Py_ssize_t n)
{
	const char *types = PyBytes_AsString(r->types);
	if (n != PyBytes_Size(r->types)) {
		PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", tl_kernel_name(r->kernel->kernel),
			     PyBytes_Size(r->types), n);
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		int type = (unsigned char)types[i];
		bool is_constant = (type & PARAM_KIND) == PARAM_CONSTANT;
		if (add_argument(a, is_constant ? PyTuple_GetItem(r->values, i) : given[i], type))
			return -1;
	}
	int device = a->place == PLACE_CUDA ? a->device : -1;
	if (a->place != PLACE_ANY && device != r->device) {
		PyErr_Format(PyExc_ValueError, "%s was compiled for %s, and its arguments are elsewhere",
			     tl_kernel_name(r->kernel->kernel), r->device < 0 ? "the CPU" : "another device");
		return -1;
	}
	return 0;
}

static int set_grid_and_stream(tl_config *c, PyObject *const *given)
{
	for (int i = 0; i < 3; i++)
		if (take_axis(given[i], i, &c->grid[i]))
			return -1;
	c->grid_dims = 3;
	c->stream = given[3] == Py_None ? NULL : PyLong_AsVoidPtr(given[3]);
	return PyErr_Occurred() ? -1 : 0;
}

static int call_hook(PyObject *hook, PyObject *metadata)
{
	if (hook == Py_None)
		return 0;
	PyObject *r = PyObject_CallFunctionObjArgs(hook, metadata, NULL);
	Py_XDECREF(r);
	return r ? 0 : -1;
}

static PyObject *run(PyObject *self, PyObject *const *given, Py_ssize_t n)
{
	const struct runner *r = (const struct runner *)self;
	struct arguments a;
	arguments_start(&a);
	tl_config c = r->config;
	bool good = n >= LEADING;
	if (!good)
		PyErr_SetString(PyExc_TypeError, "run: a grid, a stream and five other arguments come first");
	good = good && !add_arguments(r, &a, given + LEADING, n - LEADING) && !set_grid_and_stream(&c, given) &&
	       !call_hook(given[7], given[6]);
	if (good) {
		tl_status s;
		Py_BEGIN_ALLOW_THREADS
		s = tl_launch(r->kernel->kernel, &c, a.at, (size_t)a.len);
		Py_END_ALLOW_THREADS
		good = !s || raise_status(s);
	}
	arguments_free(&a);
	return good && !call_hook(given[8], given[6]) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *runner_new(PyObject *self, PyObject *args)
{
	(void)self;
	static PyMethodDef def = {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, "Launches the kernel."};
	PyObject *kernel, *types, *values, *options;
	int device;
	if (!PyArg_ParseTuple(args, "O!SO!O!i", kernel_type, &kernel, &types, &PyTuple_Type, &values, &PyDict_Type,
			      &options, &device))
		return NULL;
	tl_config c = {.grid = {0}};
	if (PyTuple_Size(values) != PyBytes_Size(types) || PyTuple_Size(values) > MAX_ARGS) {
		PyErr_SetString(PyExc_ValueError, "there must be a type and a value for each parameter");
		return NULL;
	}
	if (config_from_options(&c, options))
		return NULL;
	struct runner *r = (struct runner *)PyType_GenericAlloc(runner_type, 0);
	if (!r)
		return NULL;
	r->kernel = (struct kernel_object *)Py_NewRef(kernel);
	r->types = Py_NewRef(types);
	r->values = Py_NewRef(values);
	r->config = c;
	r->device = device;
	PyObject *f = PyCFunction_NewEx(&def, (PyObject *)r, NULL);
	Py_DECREF(r);
	return f;
}

static void runner_dealloc(PyObject *self)
{
	struct runner *r = (struct runner *)self;
	PyTypeObject *type = Py_TYPE(self);
	Py_DECREF(r->kernel);
	Py_DECREF(r->types);
	Py_DECREF(r->values);
	PyObject_Free(self);
	Py_DECREF(type);
}

int runner_init(PyObject *module)
{
	static PyMethodDef functions[] = {
		{"runner", runner_new, METH_VARARGS,
		 "runner(kernel, types, values, options, device): a function that launches the kernel."},
		{NULL, NULL, 0, NULL}};
	PyType_Slot slots[] = {{Py_tp_dealloc, runner_dealloc}, {0, NULL}};
	PyType_Spec spec = {"libtl._core.Runner", sizeof(struct runner), 0,
			    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
	runner_type = (PyTypeObject *)PyType_FromSpec(&spec);
	return runner_type && !PyModule_AddType(module, runner_type) ? PyModule_AddFunctions(module, functions) : -1;
}

/* Conversion of Python objects to arguments. Numbers, texts, tuples, and tensors with DLPack's C exchange interface
 * (https://dmlc.github.io/dlpack) are converted here. Python code converts other objects to libtl._core.Arg. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *arg_type;

/* --- tensors by DLPack ------------------------------------------------------------------------------------------- */

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

struct dl_tensor {
	void *data;
	struct {
		int32_t type, index;
	} device;
	int32_t ndim;
	struct {
		uint8_t code, bits;
		uint16_t lanes;
	} dtype;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};

/* DLPackExchangeAPI of version 1. */
struct dl_exchange {
	struct {
		uint32_t major, minor;
		void *older;
	} header;
	void (*allocate)(void), (*from_object)(void), (*to_object)(void);
	int (*view)(void *object, struct dl_tensor *out);
	int (*stream)(int device_type, int32_t device, void **out);
};

/* Types whose interface was looked up. They are kept. */
enum { KNOWN_TYPES = 16 };
static struct known_type {
	PyTypeObject *type;
	const struct dl_exchange *api; /* NULL: the type has none */
	bool has_storage;              /* objects have untyped_storage(), as PyTorch's do */
	bool is_array;                 /* objects have NumPy's array interface */
} known_types[KNOWN_TYPES];
static int n_known_types;

static struct known_type look_up(PyTypeObject *type)
{
	struct known_type k = {type, NULL, false, false};
	PyObject *capsule = PyObject_GetAttr((PyObject *)type, names.exchange_api);
	if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
		k.api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
	if (k.api && (k.api->header.major != 1 || !k.api->view))
		k.api = NULL;
	PyErr_Clear();
	Py_XDECREF(capsule);
	k.has_storage = k.api && PyObject_HasAttr((PyObject *)type, names.untyped_storage);
	k.is_array = !k.api && PyObject_HasAttr((PyObject *)type, names.array_struct) &&
		     PyObject_HasAttr((PyObject *)type, names.base) && PyObject_HasAttr((PyObject *)type, names.ctypes);
	return k;
}

static struct known_type type_of(PyObject *o)
{
	PyTypeObject *type = Py_TYPE(o);
	for (int i = 0; i < n_known_types; i++)
		if (known_types[i].type == type)
			return known_types[i];
	struct known_type k = look_up(type);
	if (n_known_types < KNOWN_TYPES) {
		Py_INCREF(type);
		known_types[n_known_types++] = k;
	}
	return k;
}

/* The element type, or -1: the language has none like it. */
static int dtype_of(const struct dl_tensor *t)
{
	static const struct {
		uint8_t code, bits;
		tl_dtype dtype;
	} all[] = {{0, 8, TL_I8},   {0, 16, TL_I16},  {0, 32, TL_I32}, {0, 64, TL_I64},    {1, 8, TL_U8},
		   {1, 16, TL_U16}, {1, 32, TL_U32},  {1, 64, TL_U64}, {2, 16, TL_F16},    {2, 32, TL_F32},
		   {2, 64, TL_F64}, {4, 16, TL_BF16}, {6, 8, TL_I1},   {10, 8, TL_F8E4M3}, {12, 8, TL_F8E5M2}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].code == t->dtype.code && all[i].bits == t->dtype.bits && t->dtype.lanes == 1)
			return (int)all[i].dtype;
	return -1;
}

/* The bytes from the address on to the end of the elements. */
static uint64_t extent(const struct dl_tensor *t, size_t size)
{
	uint64_t last = 0, row = 1; /* without strides the tensor is contiguous */
	for (int i = t->ndim; i--;) {
		if (t->shape[i] <= 0)
			return 0;
		last += (uint64_t)(t->shape[i] - 1) * (t->strides ? (uint64_t)t->strides[i] : row);
		row *= (uint64_t)t->shape[i];
	}
	return (last + 1) * size;
}

static long long number_of(PyObject *o, PyObject *method)
{
	PyObject *r = PyObject_CallMethodObjArgs(o, method, NULL);
	long long v = r ? (long long)PyLong_AsUnsignedLongLong(r) : -1;
	Py_XDECREF(r);
	return v;
}

/* The bytes from the address to the end of the tensor's storage: a kernel may use memory around a view. */
static int64_t bytes_in_storage(PyObject *o, const struct dl_tensor *t, uint64_t seen)
{
	PyObject *storage = PyObject_CallMethodObjArgs(o, names.untyped_storage, NULL);
	if (!storage)
		return -1;
	long long all = number_of(storage, names.nbytes), base = 0;
	if (all >= 0 && (uint64_t)all != seen) {
		base = number_of(storage, names.data_ptr);
		all = base ? base + all - (long long)(uintptr_t)t->data : 0;
	}
	Py_DECREF(storage);
	return PyErr_Occurred() ? -1 : all < 0 ? 0 : all;
}

/* The first pointer decides where the kernel runs; the others must be of the same device. */
static int set_place(struct arguments *a, enum place p, int device, int (*stream)(int, int32_t, void **))
{
	if (p == PLACE_ANY || (a->place == p && (p == PLACE_HOST || a->device == device)))
		return 1;
	if (a->place == PLACE_ANY) {
		a->place = p;
		a->device = device;
		a->stream_of = stream;
		return 1;
	}
	char here[32], there[32];
	snprintf(here, sizeof here, a->place == PLACE_HOST ? "cpu" : "cuda:%d", a->device);
	snprintf(there, sizeof there, p == PLACE_HOST ? "cpu" : "cuda:%d", device);
	PyErr_Format(PyExc_ValueError,
		     "arguments are on different devices: one before is on %s, and argument %zd is on %s", here, a->len,
		     there);
	return -1;
}

static int add_tensor(struct arguments *a, PyObject *o, const struct known_type *k, tl_arg *out)
{
	struct dl_tensor t;
	if (k->api->view(o, &t)) {
		PyErr_Clear(); /* Python code states which tensors cannot be passed */
		return 0;
	}
	int dtype = dtype_of(&t), type = t.device.type;
	bool cuda = type == DL_CUDA || type == DL_CUDA_MANAGED;
	if (dtype < 0 || !(cuda || type == DL_CPU || type == DL_CUDA_HOST))
		return 0;
	char *data = (char *)t.data + t.byte_offset;
	t.data = data;
	uint64_t bytes = extent(&t, tl_dtype_size((tl_dtype)dtype));
	if (k->has_storage && data) {
		int64_t all = bytes_in_storage(o, &t, bytes);
		if (all < 0)
			return -1;
		bytes = (uint64_t)all;
	}
	*out = tl_range((tl_dtype)dtype, data, bytes);
	return set_place(a, cuda ? PLACE_CUDA : PLACE_HOST, cuda ? t.device.index : 0, cuda ? k->api->stream : NULL);
}

/* --- arrays by NumPy's array interface --------------------------------------------------------------------------- */

/* PyArrayInterface: https://numpy.org/doc/stable/reference/arrays.interface.html */
struct array_interface {
	int two, rank;
	char kind;
	int size, flags;
	Py_ssize_t *shape, *strides; /* strides in bytes */
	char *data;
	PyObject *descr;
};
enum { ARRAY_NATIVE = 0x200, ARRAY_WRITEABLE = 0x400 };

/* Copies what does not need the capsule; `end` receives the address after the last element. 1: done. */
static int read_array(PyObject *o, struct array_interface *out, char **end)
{
	PyObject *capsule = PyObject_GetAttr(o, names.array_struct);
	const struct array_interface *i = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
	int done = i ? 1 : -1;
	if (i) {
		*out = *i;
		*end = i->data + i->size;
	}
	for (int k = 0; done > 0 && k < i->rank; k++) {
		if (i->shape[k] && i->strides[k] < 0 && i->shape[k] > 1) {
			PyErr_SetString(PyExc_ValueError,
					"an array with negative strides cannot be passed to a kernel; pass a copy");
			done = -1;
		} else if (!i->shape[k]) {
			*end = i->data;
			break;
		} else {
			*end += (i->shape[k] - 1) * i->strides[k];
		}
	}
	Py_XDECREF(capsule);
	return done;
}

/* The element type, or -1. */
static int dtype_of_array(const struct array_interface *i)
{
	static const struct {
		char kind;
		int size;
		tl_dtype dtype;
	} all[] = {{'b', 1, TL_I1},  {'i', 1, TL_I8},  {'i', 2, TL_I16}, {'i', 4, TL_I32},
		   {'i', 8, TL_I64}, {'u', 1, TL_U8},  {'u', 2, TL_U16}, {'u', 4, TL_U32},
		   {'u', 8, TL_U64}, {'f', 2, TL_F16}, {'f', 4, TL_F32}, {'f', 8, TL_F64}};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (all[k].kind == i->kind && all[k].size == i->size && i->flags & ARRAY_NATIVE)
			return (int)all[k].dtype;
	return -1;
}

/* The end of the memory that a view is part of. */
static int end_of_owner(PyObject *o, char **end)
{
	PyObject *base = PyObject_GetAttr(o, names.base);
	int done = base ? 1 : -1;
	while (done > 0 && Py_TYPE(base) == Py_TYPE(o)) {
		struct array_interface i;
		char *e;
		done = read_array(base, &i, &e);
		if (done > 0 && e > *end)
			*end = e;
		PyObject *next = done > 0 ? PyObject_GetAttr(base, names.base) : NULL;
		done = next ? done : -1;
		Py_DECREF(base);
		base = next;
	}
	Py_XDECREF(base);
	return done;
}

static int add_array(struct arguments *a, PyObject *o, tl_arg *out)
{
	struct array_interface i;
	char *end;
	if (read_array(o, &i, &end) < 0)
		return -1;
	int dtype = dtype_of_array(&i);
	if (dtype < 0 || !(i.flags & ARRAY_WRITEABLE))
		return 0;
	if (end_of_owner(o, &end) < 0)
		return -1;
	*out = tl_range((tl_dtype)dtype, i.data, (size_t)(end - i.data));
	return set_place(a, PLACE_HOST, 0, NULL);
}

/* --- numbers, texts, tuples --------------------------------------------------------------------------------------- */

static PyObject *converter; /* libtl._arguments.convert */

static int add_integer(PyObject *o, tl_arg *out)
{
	int overflow;
	long long i = PyLong_AsLongLongAndOverflow(o, &overflow);
	if (!overflow) {
		*out = tl_int(i);
		return i == -1 && PyErr_Occurred() ? -1 : 1;
	}
	unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
	if (overflow < 0)
		PyErr_SetString(PyExc_OverflowError, "the integer is below -2^63");
	*out = tl_uint(u);
	return PyErr_Occurred() ? -1 : 1;
}

static int convert(struct arguments *a, PyObject *o, tl_arg *out);

/* Appends to an array of n pointers, whose size is a power of two. */
static int append(void ***all, Py_ssize_t *n, void *p)
{
	if (!(*n & (*n - 1))) {
		void **larger = realloc(*all, (*n ? 2 * (size_t)*n : 1) * sizeof *larger);
		if (!larger) {
			PyErr_NoMemory();
			return -1;
		}
		*all = larger;
	}
	(*all)[(*n)++] = p;
	return 0;
}

/* Takes over a reference to an object that an argument refers to. */
static int keep(struct arguments *a, PyObject *o)
{
	void **all = (void **)(void *)a->kept;
	int r = append(&all, &a->nkept, o);
	a->kept = (PyObject **)(void *)all;
	if (r)
		Py_DECREF(o);
	return r;
}

/* The field names of a named tuple at `out`. */
static int add_fields(struct arguments *a, PyObject *o, Py_ssize_t n, const char **out)
{
	PyObject *fields = PyObject_GetAttr((PyObject *)Py_TYPE(o), names.fields);
	if (!fields) {
		PyErr_Clear();
		return 0;
	}
	bool good = PyTuple_Check(fields) && PyTuple_Size(fields) == n;
	for (Py_ssize_t i = 0; i < n && good; i++)
		good = (out[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(fields, i), NULL)) != NULL;
	return keep(a, fields) || !good ? -1 : 1;
}

static int add_tuple(struct arguments *a, PyObject *o, tl_arg *out)
{
	Py_ssize_t n = PySequence_Size(o);
	struct {
		tl_tuple tuple;
		tl_arg items[];
	} *block = calloc(1, sizeof *block + (size_t)(n + 1) * (sizeof(tl_arg) + sizeof(char *)));
	if (!block || append(&a->blocks, &a->nblocks, block)) {
		free(block);
		PyErr_NoMemory();
		return -1;
	}
	const char **fields = (const char **)(void *)(block->items + n);
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *item = PySequence_GetItem(o, i);
		int r = item ? convert(a, item, &block->items[i]) : -1;
		Py_XDECREF(item); /* the sequence keeps it */
		if (r <= 0)
			return r;
	}
	int named = PyTuple_Check(o) ? add_fields(a, o, n, fields) : 0;
	block->tuple = (tl_tuple){(size_t)n, block->items, named > 0 ? fields : NULL};
	*out = tl_tuple_arg(&block->tuple);
	return named < 0 ? -1 : 1;
}

static int add_converted(struct arguments *a, PyObject *o, tl_arg *out)
{
	const struct arg_object *arg = (const struct arg_object *)o;
	*out = arg->arg;
	bool refers = out->kind == TL_ARG_DESCRIPTOR || out->kind == TL_ARG_FUNC || out->kind == TL_ARG_STR;
	if (refers && keep(a, Py_NewRef(o)))
		return -1;
	a->is_read_only |= arg->is_read_only;
	return set_place(a, arg->place, arg->device, arg->stream_of);
}

static int add_text(struct arguments *a, PyObject *o, tl_arg *out)
{
	const char *text = PyUnicode_AsUTF8AndSize(o, NULL);
	*out = tl_str(text);
	return text && !keep(a, Py_NewRef(o)) ? 1 : -1;
}

/* 0: Python code cannot convert the object either, because the kernel's module must contain it. */
static int add_by_python(struct arguments *a, PyObject *o, tl_arg *out)
{
	PyObject *r = converter ? PyObject_CallFunctionObjArgs(converter, o, NULL) : NULL;
	if (!r)
		return -1;
	if (r == Py_NotImplemented) {
		Py_DECREF(r);
		return 0;
	}
	return keep(a, r) ? -1 : convert(a, r, out);
}

static int convert(struct arguments *a, PyObject *o, tl_arg *out)
{
	PyTypeObject *type = Py_TYPE(o);
	if (type == &PyLong_Type)
		return add_integer(o, out);
	if (type == &PyBool_Type) {
		*out = tl_bool(o == Py_True);
		return 1;
	}
	if (o == Py_None) {
		*out = tl_none();
		return 1;
	}
	if (type == &PyFloat_Type) {
		*out = tl_float(PyFloat_AsDouble(o));
		return 1;
	}
	if (type == &PyUnicode_Type)
		return add_text(a, o, out);
	if (type == arg_type)
		return add_converted(a, o, out);
	if (PyTuple_Check(o) || PyList_Check(o))
		return add_tuple(a, o, out);
	const struct known_type k = type_of(o);
	int done = k.api ? add_tensor(a, o, &k, out) : k.is_array ? add_array(a, o, out) : 0;
	return done ? done : add_by_python(a, o, out);
}

int arguments_add(struct arguments *a, PyObject *o)
{
	if (a->len == MAX_ARGS) {
		PyErr_Format(PyExc_ValueError, "more than %d arguments", MAX_ARGS);
		return -1;
	}
	int done = convert(a, o, &a->at[a->len]);
	a->len += done > 0;
	return done;
}

void arguments_start(struct arguments *a)
{
	a->len = a->nblocks = a->nkept = 0;
	a->blocks = NULL;
	a->kept = NULL;
	a->place = PLACE_ANY;
	a->device = 0;
	a->stream_of = NULL;
	a->is_read_only = false;
}

void arguments_free(struct arguments *a)
{
	while (a->nblocks)
		free(a->blocks[--a->nblocks]);
	while (a->nkept)
		Py_DECREF(a->kept[--a->nkept]);
	free(a->blocks);
	free(a->kept);
}

/* --- converted arguments ------------------------------------------------------------------------------------------ */

static PyObject *arg_new(tl_arg a, PyObject *keep)
{
	struct arg_object *o = (struct arg_object *)PyType_GenericAlloc(arg_type, 0);
	if (o) {
		o->arg = a;
		o->keep = keep ? Py_NewRef(keep) : NULL;
	}
	return (PyObject *)o;
}

static void arg_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_XDECREF(((struct arg_object *)self)->keep);
	PyObject_Free(self);
	Py_DECREF(type);
}

static bool is_dtype(int t)
{
	if (t >= 0 && tl_dtype_size((tl_dtype)t))
		return true;
	PyErr_Format(PyExc_ValueError, "there is no dtype %d", t);
	return false;
}

static int set_device(PyObject *arg, int device)
{
	struct arg_object *o = (struct arg_object *)arg;
	if (o) {
		o->place = device < -1 ? PLACE_ANY : device < 0 ? PLACE_HOST : PLACE_CUDA;
		o->device = device;
	}
	return 0;
}

static PyObject *pointer(PyObject *self, PyObject *args)
{
	(void)self;
	int dtype, device, read_only = 0;
	unsigned long long address, bytes;
	PyObject *keep;
	if (!PyArg_ParseTuple(args, "iKKiO|p", &dtype, &address, &bytes, &device, &keep, &read_only) ||
	    !is_dtype(dtype))
		return NULL;
	PyObject *arg = arg_new(tl_range((tl_dtype)dtype, (void *)(uintptr_t)address, (size_t)bytes), keep);
	set_device(arg, device);
	if (arg)
		((struct arg_object *)arg)->is_read_only = read_only;
	return arg;
}

static PyObject *number(PyObject *self, PyObject *args)
{
	(void)self;
	int dtype;
	PyObject *value;
	if (!PyArg_ParseTuple(args, "iO", &dtype, &value) || !is_dtype(dtype))
		return NULL;
	tl_arg a;
	if (PyFloat_Check(value))
		a = tl_float_typed((tl_dtype)dtype, PyFloat_AsDouble(value));
	else if (add_integer(value, &a) < 0)
		return NULL;
	a.dtype = (tl_dtype)dtype;
	a.typed = 1;
	return arg_new(a, NULL);
}

static PyObject *type_value(PyObject *self, PyObject *args)
{
	(void)self;
	int dtype;
	if (!PyArg_ParseTuple(args, "i", &dtype) || !is_dtype(dtype))
		return NULL;
	return arg_new(tl_type((tl_dtype)dtype), NULL);
}

static PyObject *function(PyObject *self, PyObject *args)
{
	(void)self;
	PyObject *name;
	if (!PyArg_ParseTuple(args, "U", &name))
		return NULL;
	const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
	return text ? arg_new(tl_func(text), name) : NULL;
}

/* The number, text or dtype as a compile-time value, or a number without specialisation. */
static PyObject *marked(PyObject *value, unsigned constant)
{
	struct arguments a;
	arguments_start(&a);
	PyObject *r = NULL;
	int done = arguments_add(&a, value);
	if (done > 0 && !a.nblocks) {
		a.at[0].constant = constant & 15;
		r = arg_new(a.at[0], value);
		((struct arg_object *)r)->place = a.place;
		((struct arg_object *)r)->device = a.device;
		((struct arg_object *)r)->stream_of = a.stream_of;
	} else if (done >= 0) {
		PyErr_SetString(PyExc_TypeError, "the value is not a number, text or dtype");
	}
	arguments_free(&a);
	return r;
}

static PyObject *constant(PyObject *self, PyObject *value)
{
	(void)self;
	return marked(value, 1);
}

static PyObject *unspecialized(PyObject *self, PyObject *value)
{
	(void)self;
	return marked(value, 2);
}

static int take_integers(PyObject *o, int rank, int64_t *out)
{
	for (int i = 0; i < rank; i++) {
		PyObject *item = PySequence_GetItem(o, i), *n = item ? PyNumber_Index(item) : NULL;
		out[i] = n ? PyLong_AsLongLong(n) : -1;
		Py_XDECREF(n);
		Py_XDECREF(item);
		if (PyErr_Occurred())
			return -1;
	}
	return 0;
}

static PyObject *descriptor(PyObject *self, PyObject *args)
{
	(void)self;
	PyObject *base, *shape, *strides, *block;
	int nan, tf32;
	int64_t blocks[TL_MAX_RANK] = {0};
	if (!PyArg_ParseTuple(args, "O!OOOpp", arg_type, &base, &shape, &strides, &block, &nan, &tf32))
		return NULL;
	const struct arg_object *b = (struct arg_object *)base;
	Py_ssize_t rank = PySequence_Size(shape);
	if (rank < 1 || rank > TL_MAX_RANK || PySequence_Size(strides) != rank || PySequence_Size(block) != rank) {
		PyErr_Format(PyExc_ValueError, "a descriptor needs 1 to %d sizes, and as many strides and block sizes",
			     TL_MAX_RANK);
		return NULL;
	}
	struct arg_object *o = (struct arg_object *)arg_new(tl_none(), base);
	if (!o)
		return NULL;
	o->descriptor = (tl_descriptor){.dtype = b->arg.dtype,
					.rank = (int)rank,
					.base = b->arg.ptr,
					.pads_with_nan = nan,
					.rounds_to_tf32 = tf32};
	if (take_integers(shape, (int)rank, o->descriptor.shape) ||
	    take_integers(strides, (int)rank, o->descriptor.strides) || take_integers(block, (int)rank, blocks)) {
		Py_DECREF(o);
		return NULL;
	}
	for (int i = 0; i < rank; i++)
		o->descriptor.block_shape[i] = (int32_t)blocks[i];
	o->arg = tl_desc(&o->descriptor);
	o->place = b->place;
	o->device = b->device;
	o->stream_of = b->stream_of;
	return (PyObject *)o;
}

static PyObject *set_converter(PyObject *self, PyObject *f)
{
	(void)self;
	replace(converter, Py_NewRef(f));
	return Py_NewRef(Py_None);
}

/* tensor(object): the object as an Arg, if its type has DLPack's C interface; else None. */
static PyObject *tensor(PyObject *self, PyObject *o)
{
	(void)self;
	struct arguments a;
	arguments_start(&a);
	tl_arg arg;
	const struct known_type k = type_of(o);
	int done = k.api ? add_tensor(&a, o, &k, &arg) : k.is_array ? add_array(&a, o, &arg) : 0;
	PyObject *r = done > 0 ? arg_new(arg, o) : done < 0 ? NULL : Py_NewRef(Py_None);
	if (done > 0 && r) {
		set_device(r, a.place == PLACE_CUDA ? a.device : -1);
		((struct arg_object *)r)->stream_of = a.stream_of;
	}
	return r;
}

static PyObject *arg_member(PyObject *self, void *which)
{
	const struct arg_object *o = (const struct arg_object *)self;
	switch (*(const char *)which) {
	case 'd': return PyLong_FromLong(o->arg.dtype);
	case 'p': return PyLong_FromVoidPtr(o->arg.ptr);
	case 'b': return PyLong_FromUnsignedLongLong(o->arg.bytes);
	case 'r': return PyBool_FromLong(o->is_read_only);
	case 'k': return Py_NewRef(o->keep ? o->keep : Py_None);
	case 'i': return PyBool_FromLong(o->arg.kind == TL_ARG_PTR);
	default: return PyLong_FromLong(o->place == PLACE_CUDA ? o->device : o->place == PLACE_HOST ? -1 : -2);
	}
}

/* detached(): the argument without the object that owns its memory. */
static PyObject *arg_detached(PyObject *self, PyObject *unused)
{
	(void)unused;
	const struct arg_object *o = (const struct arg_object *)self;
	if (o->arg.kind != TL_ARG_PTR && o->arg.kind != TL_ARG_DESCRIPTOR)
		return Py_NewRef(self);
	struct arg_object *r = (struct arg_object *)arg_new(o->arg, NULL);
	if (!r)
		return NULL;
	r->place = o->place;
	r->device = o->device;
	r->stream_of = o->stream_of;
	r->descriptor = o->descriptor;
	if (o->arg.kind == TL_ARG_DESCRIPTOR)
		r->arg.descriptor = &r->descriptor;
	return (PyObject *)r;
}

int arguments_init(PyObject *module)
{
	static PyMethodDef methods[] = {{"detached", arg_detached, METH_NOARGS,
					 "The argument without the object that owns its memory."},
					{NULL, NULL, 0, NULL}};
	static PyMethodDef functions[] = {
		{"pointer", pointer, METH_VARARGS,
		 "pointer(dtype, address, bytes, device, keep, read_only); device -1 is the host, -2 any device."},
		{"number", number, METH_VARARGS, "number(dtype, value): a number of the type."},
		{"type", type_value, METH_VARARGS, "type(dtype): the dtype as a compile-time value."},
		{"function", function, METH_VARARGS, "function(name): a jit function of the kernel's module."},
		{"constant", constant, METH_O, "constant(value): a compile-time value."},
		{"unspecialized", unspecialized, METH_O, "unspecialized(value): an argument without specialisation."},
		{"descriptor", descriptor, METH_VARARGS,
		 "descriptor(pointer, shape, strides, block_shape, pads_with_nan, rounds_to_tf32)"},
		{"set_converter", set_converter, METH_O, "Sets the function that converts other objects."},
		{"tensor", tensor, METH_O, "tensor(object): a pointer to the memory of a tensor or array, or None."},
		{NULL, NULL, 0, NULL},
	};
	static PyGetSetDef members[] = {{"dtype", arg_member, NULL, "The element type, as tl_dtype.", "d"},
					{"address", arg_member, NULL, "The address.", "p"},
					{"bytes", arg_member, NULL, "The bytes from the address on.", "b"},
					{"is_read_only", arg_member, NULL, "The memory must not be written.", "r"},
					{"keep", arg_member, NULL, "The object that owns the memory.", "k"},
					{"is_pointer", arg_member, NULL, "Is it a pointer?", "i"},
					{"device", arg_member, NULL, "The index of the GPU; -1: the host; -2: any.",
					 "x"},
					{NULL, NULL, NULL, NULL, NULL}};
	PyType_Slot slots[] = {{Py_tp_dealloc, arg_dealloc}, {Py_tp_getset, members}, {Py_tp_methods, methods},
				{0, NULL}};
	PyType_Spec spec = {"libtl._core.Arg", sizeof(struct arg_object), 0,
			    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
	arg_type = (PyTypeObject *)PyType_FromSpec(&spec);
	return arg_type && !PyModule_AddType(module, arg_type) ? PyModule_AddFunctions(module, functions) : -1;
}

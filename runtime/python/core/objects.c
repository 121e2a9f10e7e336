/* Contexts, modules and kernels. A kernel keeps its module, and a module its context, so objects may be released in any
 * order. */
#include "core.h"

#include <stdlib.h>

PyTypeObject *kernel_type;
static PyTypeObject *context_type, *module_type;

struct context_object {
	PyObject_HEAD tl_context *context;
};

struct module_object {
	PyObject_HEAD tl_module *module;
	PyObject *context;
	PyObject *sources;   /* a tuple */
	PyObject *elsewhere; /* a dict: device → Module of the same sources; Python code fills it */
};

/* --- errors ------------------------------------------------------------------------------------------------------ */

PyObject *raise_status(tl_status s)
{
	const tl_error_info *e = tl_error_details();
	PyObject *module = PyImport_ImportModule("libtl.errors"), *error = NULL;
	if (module)
		error = PyObject_CallMethod(module, "from_status", "issssII", (int)s, tl_status_name(s), e->text,
					    e->kernel, e->file, e->line, e->column);
	if (error)
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	Py_XDECREF(error);
	Py_XDECREF(module);
	return NULL;
}

static void release(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* --- contexts ---------------------------------------------------------------------------------------------------- */

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
	const char *device;
	static char *keywords[] = {"device", NULL};
	if (!PyArg_ParseTupleAndKeywords(args, kw, "z", keywords, &device))
		return NULL;
	struct context_object *c = (struct context_object *)PyType_GenericAlloc(type, 0);
	if (!c)
		return NULL;
	tl_status s;
	Py_BEGIN_ALLOW_THREADS s =
		device && !*device ? tl_context_from_cuda(NULL, &c->context) : tl_context_create(device, &c->context);
	Py_END_ALLOW_THREADS if (!s) return (PyObject *)c;
	raise_status(s);
	Py_DECREF(c);
	return NULL;
}

static void context_dealloc(PyObject *self)
{
	tl_context_release(((struct context_object *)self)->context);
	release(self);
}

static PyObject *context_synchronize(PyObject *self, PyObject *unused)
{
	(void)unused;
	tl_status s;
	Py_BEGIN_ALLOW_THREADS s = tl_synchronize(((struct context_object *)self)->context);
	Py_END_ALLOW_THREADS return s ? raise_status(s) : Py_NewRef(Py_None);
}

static PyObject *context_info(PyObject *self, PyObject *unused)
{
	(void)unused;
	tl_device_info i;
	tl_status s = tl_device(((struct context_object *)self)->context, &i);
	if (s)
		return raise_status(s);
	return Py_BuildValue("{s:s,s:s,s:s,s:i,s:n,s:n,s:i,s:s}", "kind", i.kind, "name", i.name, "target", i.target,
			     "num_sms", i.num_sms, "shared_bytes", (Py_ssize_t)i.shared_bytes, "memory_bytes",
			     (Py_ssize_t)i.memory_bytes, "capability", i.capability, "spec", i.spec);
}

/* Diagnostics go to the function of the module libtl.errors that is named so. */
static void diagnose(void *user, const tl_diagnostic *d)
{
	(void)user;
	if (d->severity != TL_SEVERITY_WARNING)
		return;
	PyGILState_STATE held = PyGILState_Ensure();
	PyObject *module = PyImport_ImportModule("libtl.errors"), *r = NULL;
	if (module)
		r = PyObject_CallMethod(module, "warn", "s", d->shown);
	if (!r)
		PyErr_WriteUnraisable(NULL);
	Py_XDECREF(r);
	Py_XDECREF(module);
	PyGILState_Release(held);
}

static PyObject *context_show_warnings(PyObject *self, PyObject *unused)
{
	(void)unused;
	tl_status s = tl_context_diagnostics(((struct context_object *)self)->context, diagnose, NULL, false);
	return s ? raise_status(s) : Py_NewRef(Py_None);
}

/* wrap(address, bytes): a capsule that owns a buffer of the caller's memory. */
static void unwrap(PyObject *capsule)
{
	tl_buffer_destroy(PyCapsule_GetPointer(capsule, "tl_buffer"));
}

static PyObject *context_wrap(PyObject *self, PyObject *args)
{
	unsigned long long address, bytes;
	tl_buffer *b;
	if (!PyArg_ParseTuple(args, "KK", &address, &bytes))
		return NULL;
	tl_status s = tl_buffer_wrap(((struct context_object *)self)->context, (void *)(uintptr_t)address, bytes, &b);
	return s ? raise_status(s) : PyCapsule_New(b, "tl_buffer", unwrap);
}

static PyMethodDef context_methods[] = {
	{"synchronize", context_synchronize, METH_NOARGS, "Waits for everything launched in the context."},
	{"info", context_info, METH_NOARGS, "The members of tl_device_info, as a dict."},
	{"show_warnings", context_show_warnings, METH_NOARGS, "Reports the compiler's warnings to libtl.errors.warn."},
	{"wrap", context_wrap, METH_VARARGS, "wrap(address, bytes): a buffer of the caller's memory."},
	{NULL, NULL, 0, NULL},
};

/* --- modules ----------------------------------------------------------------------------------------------------- */

/* Fills `out` from a tuple (name, file, first line, indent, text). The texts are the tuple's. */
static int take_source(PyObject *o, tl_source *out)
{
	int line;
	unsigned int indent;
	Py_ssize_t len;
	*out = (tl_source){0};
	if (!PyTuple_Check(o)) {
		PyErr_SetString(PyExc_TypeError, "a source must be a tuple");
		return -1;
	}
	if (!PyArg_ParseTuple(o, "zsiIs#", &out->name, &out->file, &line, &indent, &out->text, &len))
		return -1;
	out->first_line = (uint32_t)line;
	out->indent = indent;
	out->len = (size_t)len;
	return 0;
}

static PyObject *module_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
	PyObject *context, *sources;
	static char *keywords[] = {"context", "sources", NULL};
	if (!PyArg_ParseTupleAndKeywords(args, kw, "O!O!", keywords, context_type, &context, &PyTuple_Type, &sources))
		return NULL;
	Py_ssize_t n = PyTuple_Size(sources);
	struct module_object *m = (struct module_object *)PyType_GenericAlloc(type, 0);
	tl_source *all = calloc((size_t)n + 1, sizeof *all);
	bool good = m && all;
	for (Py_ssize_t i = 0; i < n && good; i++)
		good = !take_source(PyTuple_GetItem(sources, i), &all[i]);
	if (good) {
		tl_status s;
		Py_BEGIN_ALLOW_THREADS
		s = tl_module_load_sources(((struct context_object *)context)->context, all, (size_t)n, &m->module);
		Py_END_ALLOW_THREADS
		m->context = Py_NewRef(context);
		m->sources = Py_NewRef(sources);
		m->elsewhere = PyDict_New();
		good = !s || raise_status(s);
	}
	free(all);
	if (!good)
		Py_CLEAR(m);
	return (PyObject *)m;
}

static void module_dealloc(PyObject *self)
{
	struct module_object *m = (struct module_object *)self;
	tl_module_destroy(m->module);
	Py_XDECREF(m->context);
	Py_XDECREF(m->sources);
	Py_XDECREF(m->elsewhere);
	release(self);
}

static PyObject *module_member(PyObject *self, void *which)
{
	const struct module_object *m = (const struct module_object *)self;
	return Py_NewRef(*(const char *)which == 's' ? m->sources : m->elsewhere);
}

static PyObject *module_kernel(PyObject *self, PyObject *args)
{
	const char *name;
	if (!PyArg_ParseTuple(args, "s", &name))
		return NULL;
	struct kernel_object *k = (struct kernel_object *)PyType_GenericAlloc(kernel_type, 0);
	if (!k)
		return NULL;
	tl_status s = tl_module_kernel(((struct module_object *)self)->module, name, &k->kernel);
	k->module = Py_NewRef(self);
	if (!s)
		return (PyObject *)k;
	raise_status(s);
	Py_DECREF(k);
	return NULL;
}

static PyGetSetDef module_members[] = {
	{"sources", module_member, NULL, "The sources.", "s"},
	{"elsewhere", module_member, NULL, "A dict of modules of the same sources by device.", "e"},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef module_methods[] = {
	{"kernel", module_kernel, METH_VARARGS, "kernel(name): the jit function of this name."},
	{NULL, NULL, 0, NULL},
};

/* --- kernels ----------------------------------------------------------------------------------------------------- */

static void kernel_dealloc(PyObject *self)
{
	Py_XDECREF(((struct kernel_object *)self)->module);
	release(self);
}

tl_context *context_of(const struct kernel_object *k)
{
	return ((struct context_object *)((struct module_object *)k->module)->context)->context;
}

static PyObject *kernel_context(PyObject *self, void *unused)
{
	(void)unused;
	return Py_NewRef(((struct module_object *)((struct kernel_object *)self)->module)->context);
}

static PyObject *kernel_module(PyObject *self, void *unused)
{
	(void)unused;
	return Py_NewRef(((struct kernel_object *)self)->module);
}

static PyGetSetDef kernel_members[] = {
	{"module", kernel_module, NULL, "The module of the kernel.", NULL},
	{"context", kernel_context, NULL, "The context of the kernel.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

int objects_init(PyObject *module)
{
	PyType_Slot context_slots[] = {{Py_tp_new, context_new},
				       {Py_tp_dealloc, context_dealloc},
				       {Py_tp_methods, context_methods},
				       {Py_tp_doc, "Context(device): a context on a device; \"\" is the current "
						   "CUcontext."},
				       {0, NULL}};
	PyType_Slot module_slots[] = {{Py_tp_new, module_new}, {Py_tp_dealloc, module_dealloc},
				      {Py_tp_methods, module_methods}, {Py_tp_getset, module_members},
				      {Py_tp_doc, "Module(context, sources): sources are tuples (name, file, first "
						  "line, indent, text)."},
				      {0, NULL}};
	PyType_Slot kernel_slots[] = {{Py_tp_dealloc, kernel_dealloc}, {Py_tp_getset, kernel_members}, {0, NULL}};
	PyType_Spec specs[] = {
		{"libtl._core.Context", sizeof(struct context_object), 0, Py_TPFLAGS_DEFAULT, context_slots},
		{"libtl._core.Module", sizeof(struct module_object), 0, Py_TPFLAGS_DEFAULT, module_slots},
		{"libtl._core.Kernel", sizeof(struct kernel_object), 0,
		 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kernel_slots},
	};
	PyTypeObject **types[] = {&context_type, &module_type, &kernel_type};
	for (int i = 0; i < 3; i++) {
		*types[i] = (PyTypeObject *)PyType_FromSpec(&specs[i]);
		if (!*types[i] || PyModule_AddType(module, *types[i]))
			return -1;
	}
	return 0;
}

/* The launch path: kernel[grid](arguments…).
 *
 * A launcher knows a kernel's parameters. Indexed with a grid it gives a callable, which fills a tl_arg for each
 * parameter and calls tl_launch. Python code helps where it must: the first launch on a device (_kernel), and launches
 * with options or arguments that only Python code knows (_run). */
#include "core.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

PyTypeObject *launcher_type, *call_type;
static PyTypeObject *grid_type;
static bool hooked; /* every launch of every kernel goes through _run */

struct launcher {
	PyObject_HEAD
	PyObject *parameters; /* names, a tuple of interned strings */
	PyObject *defaults;   /* a dict: name → value */
	PyObject *flags;      /* bytes, one for each parameter */
	PyObject *kernels;    /* a dict: device → Kernel; -1 is the host */
	PyObject *watched;    /* a list of (dict, key, value): globals that the kernels were compiled with */
	struct variants variants; /* whose launches do not go through _run */
	char runs_python;         /* every launch goes through _run */
};

struct grid_object {
	PyObject_HEAD struct launcher *launcher;
	PyObject *grid;
};

/* A launch that has been made, for questions about its kernel. */
struct call_object {
	PyObject_HEAD struct kernel_object *kernel;
	tl_config config;
	struct arguments *arguments;
	PyObject *base; /* the call that owns the arguments; NULL: this one */
	uint64_t variant;
};

/* --- options ----------------------------------------------------------------------------------------------------- */

static const struct option {
	const char *name;
	size_t at;
	char kind; /* 'i': int, 'b': bool, 'n': int, not 0 for False; 'p': pointer, 'f': fp_fusion, 'z': ftz */
} options[] = {
	{"num_warps", offsetof(tl_config, num_warps), 'i'},
	{"num_stages", offsetof(tl_config, num_stages), 'i'},
	{"maxnreg", offsetof(tl_config, maxnreg), 'i'},
	{"group_pids", offsetof(tl_config, group_pids), 'i'},
	{"max_ctas", offsetof(tl_config, max_ctas), 'i'},
	{"debug", offsetof(tl_config, debug), 'b'},
	{"launch_cooperative_grid", offsetof(tl_config, launch_cooperative_grid), 'b'},
	{"sanitize_overflow", offsetof(tl_config, wraps), 'n'},
	{"launch_pdl", offsetof(tl_config, launch_pdl), 'b'},
	{"stream", offsetof(tl_config, stream), 'p'},
	{"enable_fp_fusion", offsetof(tl_config, fp_fusion), 'f'},
	{"enable_reflect_ftz", offsetof(tl_config, ftz), 'z'},
};
enum { NUM_OPTIONS = sizeof options / sizeof *options };
static PyObject *option_names[NUM_OPTIONS];
static PyObject *ignored; /* a set of the names of Triton's options that change nothing here */

static tl_config usual; /* of a launch without options */

static int take_int(PyObject *o, const char *name, int *out)
{
	int overflow = 0;
	PyObject *n = PyNumber_Index(o);
	long long v = n ? PyLong_AsLongLongAndOverflow(n, &overflow) : 0;
	Py_XDECREF(n);
	if (PyErr_Occurred())
		return -1;
	if (overflow || v < INT32_MIN || v > INT32_MAX) {
		PyErr_Format(PyExc_ValueError, "%s is %S, which does not fit 32 bits", name, o);
		return -1;
	}
	*out = (int)v;
	return 0;
}

/* 1: set. 0: not an option of tl_config. */
static int set_option(tl_config *c, PyObject *name, PyObject *value)
{
	for (int i = 0; i < NUM_OPTIONS; i++) {
		if (name != option_names[i] && PyUnicode_Compare(name, option_names[i]))
			continue;
		char *at = (char *)c + options[i].at;
		if (value == Py_None)
			return 1;
		int truth = strchr("bfnz", options[i].kind) ? PyObject_IsTrue(value) : 0;
		switch (options[i].kind) {
		case 'b': *(bool *)at = truth > 0; break;
		case 'n': *(int *)(void *)at = truth == 0; break;
		case 'f': *(tl_fp_fusion *)(void *)at = truth ? TL_FP_FUSION_ON : TL_FP_FUSION_OFF; break;
		case 'z': *(tl_ftz *)(void *)at = truth ? TL_FTZ_ON : TL_FTZ_OFF; break;
		}
		if (strchr("bfnz", options[i].kind))
			return truth < 0 ? -1 : 1;
		if (options[i].kind == 'i')
			return take_int(value, options[i].name, (int *)(void *)at) ? -1 : 1;
		PyObject *n = PyNumber_Index(value);
		if (n)
			*(void **)(void *)at = PyLong_AsVoidPtr(n);
		Py_XDECREF(n);
		return PyErr_Occurred() ? -1 : 1;
	}
	return ignored ? PySet_Contains(ignored, name) : 0;
}

static PyObject *set_ignored(PyObject *self, PyObject *names)
{
	(void)self;
	replace(ignored, Py_NewRef(names));
	return Py_NewRef(Py_None);
}

int config_from_options(tl_config *c, PyObject *options)
{
	Py_ssize_t at = 0;
	PyObject *name, *value;
	while (PyDict_Next(options, &at, &name, &value))
		if (set_option(c, name, value) < 0)
			return -1;
	return 0;
}

int take_axis(PyObject *o, int index, uint32_t *out)
{
	int overflow = 0;
	PyObject *n = PyNumber_Index(o);
	long long v = n ? PyLong_AsLongLongAndOverflow(n, &overflow) : 0;
	Py_XDECREF(n);
	if (!n) {
		PyErr_Format(PyExc_TypeError, "axis %d of the grid is %R; it must be an integer", index, o);
		return -1;
	}
	if (overflow || v < 0 || v > UINT32_MAX) {
		PyErr_Format(PyExc_ValueError, "axis %d of the grid has %S programs; it must have 0 to 2^32 - 1",
			     index, o);
		return -1;
	}
	*out = (uint32_t)v;
	return 0;
}

static int set_grid(tl_config *c, PyObject *grid)
{
	if (!PyTuple_Check(grid) && !PyList_Check(grid)) {
		c->grid_dims = 1;
		return take_axis(grid, 0, &c->grid[0]);
	}
	Py_ssize_t n = PySequence_Size(grid);
	if (n < 1 || n > 3) {
		PyErr_Format(PyExc_ValueError, "a grid has 1 to 3 axes, not %zd", n);
		return -1;
	}
	c->grid_dims = (int)n;
	for (int i = 0; i < n; i++) {
		PyObject *item = PySequence_GetItem(grid, i);
		int r = item ? take_axis(item, i, &c->grid[i]) : -1;
		Py_XDECREF(item);
		if (r)
			return -1;
	}
	return 0;
}

/* --- launches ---------------------------------------------------------------------------------------------------- */

static PyObject *call_new(struct kernel_object *k, const tl_config *c, struct arguments *a, uint64_t variant)
{
	struct call_object *o = (struct call_object *)PyType_GenericAlloc(call_type, 0);
	struct arguments *copy = o ? malloc(sizeof *copy) : NULL;
	if (!copy) {
		Py_XDECREF(o);
		return PyErr_NoMemory();
	}
	memcpy(copy->at, a->at, (size_t)a->len * sizeof *a->at);
	copy->len = a->len;
	copy->blocks = a->blocks;
	copy->nblocks = a->nblocks;
	copy->kept = a->kept;
	copy->nkept = a->nkept;
	copy->place = a->place;
	copy->device = a->device;
	copy->stream_of = a->stream_of;
	arguments_start(a); /* the call owns them */
	o->kernel = (struct kernel_object *)Py_NewRef((PyObject *)k);
	o->config = *c;
	o->variant = variant;
	o->arguments = copy;
	return (PyObject *)o;
}

static PyObject *launch(struct kernel_object *k, tl_config *c, struct arguments *a, uint64_t variant)
{
	tl_status s;
	if (!c->stream && a->place == PLACE_CUDA && a->stream_of && a->stream_of(2, a->device, &c->stream))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	s = tl_launch(k->kernel, c, a->at, (size_t)a->len);
	Py_END_ALLOW_THREADS
	return s ? raise_status(s) : call_new(k, c, a, variant);
}

/* The arguments by parameter: borrowed. 1: done. 0: Python code must bind them. */
static int bind(const struct launcher *l, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, tl_config *c,
		PyObject **bound)
{
	Py_ssize_t n = PyTuple_Size(l->parameters), nkw = kwnames ? PyTuple_Size(kwnames) : 0;
	if (nargs > n || n > MAX_ARGS)
		return 0;
	for (Py_ssize_t i = 0; i < n; i++)
		bound[i] = i < nargs ? args[i] : NULL;
	for (Py_ssize_t k = 0; k < nkw; k++) {
		PyObject *name = PyTuple_GetItem(kwnames, k);
		Py_ssize_t i = 0;
		while (i < n && PyTuple_GetItem(l->parameters, i) != name)
			i++;
		for (Py_ssize_t j = i < n ? n : 0; j < n; j++)
			if (!PyUnicode_Compare(PyTuple_GetItem(l->parameters, j), name))
				i = j;
		if (i < n && bound[i])
			return 0;
		if (i < n) {
			bound[i] = args[nargs + k];
			continue;
		}
		int r = set_option(c, name, args[nargs + k]);
		if (r <= 0)
			return r;
	}
	for (Py_ssize_t i = 0; i < n; i++)
		if (!bound[i] && !(bound[i] = PyDict_GetItemWithError(l->defaults, PyTuple_GetItem(l->parameters, i))))
			return 0;
	return 1;
}

/* The values of the parameters, as grid functions take them. */
static PyObject *meta(const struct launcher *l, PyObject *const *bound)
{
	PyObject *d = PyDict_New();
	for (Py_ssize_t i = 0, n = PyTuple_Size(l->parameters); d && i < n; i++)
		if (PyDict_SetItem(d, PyTuple_GetItem(l->parameters, i), bound[i]))
			Py_CLEAR(d);
	return d;
}

static int take_grid(const struct launcher *l, PyObject *grid, PyObject *const *bound, tl_config *c)
{
	if (!PyCallable_Check(grid))
		return set_grid(c, grid);
	PyObject *values = meta(l, bound), *g = values ? PyObject_CallFunctionObjArgs(grid, values, NULL) : NULL;
	int r = g ? set_grid(c, g) : -1;
	Py_XDECREF(g);
	Py_XDECREF(values);
	return r;
}

/* 1: converted. 0: Python code must. */
static int take_arguments(const struct launcher *l, PyObject *const *bound, struct arguments *a)
{
	char *flags;
	Py_ssize_t n;
	if (PyBytes_AsStringAndSize(l->flags, &flags, &n))
		return -1;
	for (Py_ssize_t i = 0; i < n; i++) {
		int r = arguments_add(a, bound[i]);
		if (r <= 0)
			return r;
		tl_arg *arg = &a->at[i];
		bool number = arg->kind == TL_ARG_INT || arg->kind == TL_ARG_UINT || arg->kind == TL_ARG_PTR;
		if (flags[i] & PARAMETER_UNSPECIALIZED && number && !arg->constant)
			arg->constant = 2;
	}
	return 1;
}

static PyObject *identity; /* libtl._source.identity */

/* Has a value changed, (holder, name, value, identity, can change in place)? The holder is a dict, or an object with
 * the attribute. A new reference keeps the tuple, because attributes may run Python code. */
static bool differs(PyObject *watched)
{
	Py_INCREF(watched);
	PyObject *holder = PyTuple_GetItem(watched, 0), *name = PyTuple_GetItem(watched, 1), *now, *is = NULL;
	if (PyDict_CheckExact(holder)) {
		now = PyDict_GetItemWithError(holder, name);
		Py_XINCREF(now);
	} else {
		now = PyObject_GetAttr(holder, name);
	}
	bool same = now && now == PyTuple_GetItem(watched, 2) && PyTuple_GetItem(watched, 4) == Py_False;
	if (now && !same) {
		is = PyObject_CallFunctionObjArgs(identity, now, NULL);
		same = is && PyObject_RichCompareBool(is, PyTuple_GetItem(watched, 3), Py_EQ) == 1;
	}
	PyErr_Clear();
	Py_XDECREF(is);
	Py_XDECREF(now);
	Py_DECREF(watched);
	return !same;
}

static PyObject *set_identity(PyObject *self, PyObject *f)
{
	(void)self;
	replace(identity, Py_NewRef(f));
	return Py_NewRef(Py_None);
}

/* Have the values changed that the kernels were compiled with? */
static bool has_changed(const struct launcher *l)
{
	for (Py_ssize_t i = 0, n = PyList_Size(l->watched); i < n; i++)
		if (differs(PyList_GetItem(l->watched, i)))
			return true;
	return false;
}

static PyObject *launcher_changed(PyObject *self, PyObject *watched)
{
	(void)self;
	for (Py_ssize_t i = 0, n = PyList_Size(watched); i < n; i++)
		if (differs(PyList_GetItem(watched, i)))
			Py_RETURN_TRUE;
	return PyErr_Occurred() ? NULL : PyBool_FromLong(0);
}

/* The next launch of each variant goes through _run. */
static void forget(struct launcher *l)
{
	PyDict_Clear(l->kernels);
	variants_clear(&l->variants);
}

static PyObject *launcher_forget(PyObject *self, PyObject *unused)
{
	(void)unused;
	forget((struct launcher *)self);
	return Py_NewRef(Py_None);
}

/* The kernel for the device of the arguments: a new reference, since another thread may forget the kernels. */
static struct kernel_object *kernel_for(struct launcher *l, const struct arguments *a)
{
	PyObject *device = PyLong_FromLong(a->place == PLACE_CUDA ? a->device : -1);
	PyObject *k = device ? PyDict_GetItemWithError(l->kernels, device) : NULL;
	if (!k && device && !PyErr_Occurred()) {
		k = PyObject_CallMethodObjArgs((PyObject *)l, names.kernel_method, device, NULL);
		if (k && (Py_TYPE(k) != kernel_type || PyDict_SetItem(l->kernels, device, k)))
			Py_CLEAR(k);
	} else {
		Py_XINCREF(k);
	}
	Py_XDECREF(device);
	return (struct kernel_object *)k;
}

static PyObject *run_python(struct launcher *l, PyObject *grid, PyObject *const *args, Py_ssize_t nargs,
			    PyObject *kwnames)
{
	PyObject *positional = PyTuple_New(nargs), *kw = PyDict_New(), *r = NULL;
	bool good = positional && kw;
	for (Py_ssize_t i = 0; i < nargs && good; i++)
		good = !PyTuple_SetItem(positional, i, Py_NewRef(args[i]));
	for (Py_ssize_t i = 0, n = kwnames ? PyTuple_Size(kwnames) : 0; i < n && good; i++)
		good = !PyDict_SetItem(kw, PyTuple_GetItem(kwnames, i), args[nargs + i]);
	if (good)
		r = PyObject_CallMethodObjArgs((PyObject *)l, names.run_method, grid, positional, kw, NULL);
	Py_XDECREF(positional);
	Py_XDECREF(kw);
	return r;
}

static PyObject *launch_grid(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	struct grid_object *g = (struct grid_object *)self;
	struct launcher *l = g->launcher;
	PyObject *bound[MAX_ARGS], *r = NULL;
	struct arguments a;
	arguments_start(&a);
	tl_config c = usual;
	int done = l->runs_python || hooked ? 0 : bind(l, args, nargs, kwnames, &c, bound);
	if (done > 0)
		done = take_arguments(l, bound, &a);
	if (done > 0 && PyList_Size(l->watched) && has_changed(l))
		forget(l);
	uint64_t h = done > 0 ? variant_of(&a, PyBytes_AsString(l->flags), &c) : 0;
	if (done > 0 && (a.is_read_only || !variants_have(&l->variants, h)))
		done = 0;
	if (!done) {
		r = run_python(l, g->grid, args, nargs, kwnames);
	} else if (done > 0 && !take_grid(l, g->grid, bound, &c)) {
		struct kernel_object *k = kernel_for(l, &a);
		r = k ? launch(k, &c, &a, h) : NULL;
		Py_XDECREF((PyObject *)k);
	}
	arguments_free(&a);
	return r;
}

static PyObject *set_usual_options(PyObject *self, PyObject *given)
{
	(void)self;
	tl_config c = {.grid = {0}};
	if (!PyDict_Check(given) || config_from_options(&c, given))
		return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "the options are not a dict");
	usual = c;
	return Py_NewRef(Py_None);
}

/* Does a setting concern every launch? Then all go through _run. */
static PyObject *set_hooked(PyObject *self, PyObject *value)
{
	(void)self;
	int b = PyObject_IsTrue(value);
	hooked = b > 0;
	return b < 0 ? NULL : Py_NewRef(Py_None);
}

/* --- grids ------------------------------------------------------------------------------------------------------- */

static PyObject *launcher_subscript(PyObject *self, PyObject *grid)
{
	static PyMethodDef def = {"launch", (PyCFunction)(void (*)(void))launch_grid, METH_FASTCALL | METH_KEYWORDS,
				  "Launches the kernel on this grid."};
	struct grid_object *g = (struct grid_object *)PyType_GenericAlloc(grid_type, 0);
	if (!g)
		return NULL;
	g->launcher = (struct launcher *)Py_NewRef(self);
	g->grid = Py_NewRef(grid);
	PyObject *f = PyCFunction_NewEx(&def, (PyObject *)g, NULL);
	Py_DECREF(g);
	return f;
}

static void grid_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_DECREF(((struct grid_object *)self)->launcher);
	Py_DECREF(((struct grid_object *)self)->grid);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* --- launchers --------------------------------------------------------------------------------------------------- */

static int launcher_setup(PyObject *self, PyObject *args, PyObject *kw)
{
	struct launcher *l = (struct launcher *)self;
	PyObject *parameters, *flags, *defaults;
	static char *keywords[] = {"parameters", "flags", "defaults", NULL};
	if (!PyArg_ParseTupleAndKeywords(args, kw, "O!O!O!", keywords, &PyTuple_Type, &parameters, &PyBytes_Type,
					 &flags, &PyDict_Type, &defaults))
		return -1;
	if (PyBytes_Size(flags) != PyTuple_Size(parameters)) {
		PyErr_SetString(PyExc_ValueError, "there must be a flag for each parameter");
		return -1;
	}
	replace(l->parameters, Py_NewRef(parameters));
	replace(l->flags, Py_NewRef(flags));
	replace(l->defaults, Py_NewRef(defaults));
	replace(l->kernels, PyDict_New());
	replace(l->watched, PyList_New(0));
	return l->kernels && l->watched ? 0 : -1;
}

static int launcher_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct launcher *l = (struct launcher *)self;
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(l->defaults);
	Py_VISIT(l->kernels);
	Py_VISIT(l->watched);
	return 0;
}

static int launcher_clear(PyObject *self)
{
	struct launcher *l = (struct launcher *)self;
	Py_CLEAR(l->parameters);
	Py_CLEAR(l->flags);
	Py_CLEAR(l->defaults);
	Py_CLEAR(l->kernels);
	Py_CLEAR(l->watched);
	variants_clear(&l->variants);
	return 0;
}

static void launcher_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyObject_GC_UnTrack(self);
	launcher_clear(self);
	PyObject_GC_Del(self);
	Py_DECREF(type);
}

/* Launches a kernel with arguments that Python code has bound and converted: _launch(kernel, grid, values, options). */
static PyObject *launcher_launch(PyObject *self, PyObject *args)
{
	PyObject *kernel, *grid, *values, *given, *r = NULL;
	if (!PyArg_ParseTuple(args, "O!OO!O!", kernel_type, &kernel, &grid, &PyTuple_Type, &values, &PyDict_Type,
			      &given))
		return NULL;
	struct launcher *l = (struct launcher *)self;
	struct arguments a;
	arguments_start(&a);
	tl_config c = usual;
	Py_ssize_t n = PyTuple_Size(values);
	if (config_from_options(&c, given))
		return NULL;
	PyObject *bound[MAX_ARGS];
	if (n != PyTuple_Size(l->parameters) || n > MAX_ARGS) {
		PyErr_SetString(PyExc_TypeError, "there must be a value for each parameter");
		return NULL;
	}
	for (Py_ssize_t i = 0; i < n; i++)
		bound[i] = PyTuple_GetItem(values, i);
	int done = take_arguments(l, bound, &a);
	if (!done)
		PyErr_Format(PyExc_TypeError, "an argument of type %R cannot be passed to a kernel",
			     (PyObject *)Py_TYPE(bound[a.len]));
	uint64_t h = done > 0 ? variant_of(&a, PyBytes_AsString(l->flags), &c) : 0;
	if (done > 0 && grid == Py_None)
		r = call_new((struct kernel_object *)kernel, &c, &a, h);
	else if (done > 0 && !set_grid(&c, grid))
		r = launch((struct kernel_object *)kernel, &c, &a, h);
	if (r && grid != Py_None)
		variants_add(&l->variants, h);
	arguments_free(&a);
	return r;
}

static PyObject *launcher_member(PyObject *self, void *which)
{
	const struct launcher *l = (struct launcher *)self;
	switch (*(const char *)which) {
	case 'k': return Py_NewRef(l->kernels);
	case 'w': return Py_NewRef(l->watched);
	default: return PyBool_FromLong(l->runs_python);
	}
}

static int set_runs_python(PyObject *self, PyObject *value, void *unused)
{
	(void)unused;
	int b = value ? PyObject_IsTrue(value) : 0;
	((struct launcher *)self)->runs_python = b > 0;
	return b < 0 ? -1 : 0;
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

static void call_dealloc(PyObject *self)
{
	struct call_object *o = (struct call_object *)self;
	PyTypeObject *type = Py_TYPE(self);
	if (o->arguments && !o->base) {
		arguments_free(o->arguments);
		free(o->arguments);
	}
	Py_XDECREF(o->base);
	Py_XDECREF(o->kernel);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static PyObject *call_dump(PyObject *self, PyObject *args)
{
	struct call_object *o = (struct call_object *)self;
	const char *stage;
	char *text;
	tl_status s;
	if (!PyArg_ParseTuple(args, "s", &stage))
		return NULL;
	Py_BEGIN_ALLOW_THREADS s = tl_kernel_dump(o->kernel->kernel, &o->config, o->arguments->at,
						  (size_t)o->arguments->len, stage, &text);
	Py_END_ALLOW_THREADS if (s) return raise_status(s);
	PyObject *r = PyUnicode_FromString(text);
	tl_free(text);
	return r;
}

/* on(kernel): the same call of the same kernel in another context. */
static PyObject *call_on(PyObject *self, PyObject *kernel)
{
	const struct call_object *o = (const struct call_object *)self;
	if (Py_TYPE(kernel) != kernel_type) {
		PyErr_SetString(PyExc_TypeError, "not a kernel");
		return NULL;
	}
	struct call_object *r = (struct call_object *)PyType_GenericAlloc(Py_TYPE(self), 0);
	if (!r)
		return NULL;
	r->kernel = (struct kernel_object *)Py_NewRef(kernel);
	r->config = o->config;
	r->config.stream = NULL;
	r->arguments = o->arguments;
	r->base = Py_NewRef(self);
	r->variant = o->variant;
	return (PyObject *)r;
}

static PyObject *call_prepare(PyObject *self, PyObject *unused)
{
	(void)unused;
	struct call_object *o = (struct call_object *)self;
	tl_status s;
	Py_BEGIN_ALLOW_THREADS s =
		tl_prepare(o->kernel->kernel, &o->config, o->arguments->at, (size_t)o->arguments->len, NULL);
	Py_END_ALLOW_THREADS return s ? raise_status(s) : Py_NewRef(Py_None);
}

static PyObject *call_resources(PyObject *self, PyObject *unused)
{
	(void)unused;
	struct call_object *o = (struct call_object *)self;
	tl_resources r;
	tl_status s;
	Py_BEGIN_ALLOW_THREADS s =
		tl_kernel_resources(o->kernel->kernel, &o->config, o->arguments->at, (size_t)o->arguments->len, &r);
	Py_END_ALLOW_THREADS if (s) return raise_status(s);
	return Py_BuildValue("{s:i,s:n,s:i,s:n,s:i,s:i}", "registers", r.registers, "local_bytes",
			     (Py_ssize_t)r.local_bytes, "threads", r.threads, "shared_bytes",
			     (Py_ssize_t)r.shared_bytes, "blocks", r.blocks, "resident", r.resident);
}

/* _estimate(grid): the members of tl_estimate for a launch with this grid. */
static PyObject *call_estimate(PyObject *self, PyObject *grid)
{
	struct call_object *o = (struct call_object *)self;
	tl_config c = o->config;
	tl_estimate e;
	tl_status s;
	if (set_grid(&c, grid))
		return NULL;
	Py_BEGIN_ALLOW_THREADS s =
		tl_kernel_estimate(o->kernel->kernel, &c, o->arguments->at, (size_t)o->arguments->len, &e);
	Py_END_ALLOW_THREADS if (s) return raise_status(s);
	return Py_BuildValue("{s:d,s:d,s:i,s:d,s:d,s:d,s:d,s:d,s:d,s:d}", "us", e.us, "blocks", e.blocks, "resident",
			     e.resident, "tensor", e.tensor, "shared", e.shared, "issue", e.issue, "special", e.special,
			     "l2", e.l2, "bytes", e.bytes, "alone", e.alone);
}

static PyObject *call_member(PyObject *self, void *which)
{
	const struct call_object *o = (const struct call_object *)self;
	switch (*(const char *)which) {
	case 'n': return PyUnicode_FromString(tl_kernel_name(o->kernel->kernel));
	case 'w': return PyLong_FromLong(o->config.num_warps ? o->config.num_warps : 4);
	case 's': return PyLong_FromLong(o->config.num_stages ? o->config.num_stages : 3);
	case 'v': return PyLong_FromUnsignedLongLong(o->variant);
	default: return Py_NewRef((PyObject *)o->kernel);
	}
}

static PyObject *set_call_type(PyObject *self, PyObject *type)
{
	(void)self;
	if (!PyType_Check(type)) {
		PyErr_SetString(PyExc_TypeError, "not a type");
		return NULL;
	}
	call_type = (PyTypeObject *)Py_NewRef(type);
	return Py_NewRef(Py_None);
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
	PyTypeObject *t = (PyTypeObject *)PyType_FromSpec(spec);
	return t && !PyModule_AddType(module, t) ? t : NULL;
}

int launcher_init(PyObject *module)
{
	static PyMethodDef functions[] = {
		{"set_call_type", set_call_type, METH_O, "Sets the type of results of launches."},
		{"set_identity", set_identity, METH_O, "Sets the function that tells what a value is for a source."},
		{"set_usual_options", set_usual_options, METH_O, "Sets the options of launches that do not give them."},
		{"set_ignored", set_ignored, METH_O, "Options with these names, a set, change nothing."},
		{"set_hooked", set_hooked, METH_O, "True: each launch of each kernel goes through _run."},
		{"changed", launcher_changed, METH_O, "changed(list of (holder, name, value)): has a value changed?"},
		{NULL, NULL, 0, NULL}};
	static PyMethodDef call_methods[] = {
		{"dump", call_dump, METH_VARARGS, "dump(stage): the text of a stage, as tl_kernel_dump."},
		{"_on", call_on, METH_O, "_on(kernel): the same call of the same kernel in another context."},
		{"prepare", call_prepare, METH_NOARGS, "Compiles the kernel for these arguments."},
		{"_resources", call_resources, METH_NOARGS, "The members of tl_resources, as a dict."},
		{"_estimate", call_estimate, METH_O, "The members of tl_estimate for a grid, as a dict."},
		{NULL, NULL, 0, NULL}};
	static PyGetSetDef call_members[] = {{"name", call_member, NULL, "The name of the kernel.", "n"},
					     {"num_warps", call_member, NULL, "Warps of a program.", "w"},
					     {"num_stages", call_member, NULL, "Stages of software pipelining.", "s"},
					     {"_variant", call_member, NULL, "The hash of the variant.", "v"},
					     {"_kernel", call_member, NULL, "The kernel.", "k"},
					     {NULL, NULL, NULL, NULL, NULL}};
	static PyMethodDef launcher_methods[] = {
		{"_launch", launcher_launch, METH_VARARGS,
		 "_launch(kernel, grid, values, options): launches; with None for the grid, only makes the result."},
		{"_forget", launcher_forget, METH_NOARGS, "The next launch of each variant goes through _run."},
		{NULL, NULL, 0, NULL}};
	static PyGetSetDef launcher_members[] = {
		{"_kernels", launcher_member, NULL, "The kernels by device.", "k"},
		{"_watched", launcher_member, NULL, "The globals that the kernels depend on.", "w"},
		{"_runs_python", launcher_member, set_runs_python, "True: each launch goes through _run.", "r"},
		{NULL, NULL, NULL, NULL, NULL}};
	PyType_Slot launcher_slots[] = {{Py_tp_init, launcher_setup},
					{Py_tp_new, PyType_GenericNew},
					{Py_tp_dealloc, launcher_dealloc},
					{Py_tp_traverse, launcher_traverse},
					{Py_tp_clear, launcher_clear},
					{Py_tp_methods, launcher_methods},
					{Py_tp_getset, launcher_members},
					{Py_mp_subscript, launcher_subscript},
					{0, NULL}};
	PyType_Slot grid_slots[] = {{Py_tp_dealloc, grid_dealloc}, {0, NULL}};
	PyType_Slot call_slots[] = {
		{Py_tp_dealloc, call_dealloc}, {Py_tp_methods, call_methods}, {Py_tp_getset, call_members}, {0, NULL}};
	PyType_Spec launcher_spec = {"libtl._core.Launcher", sizeof(struct launcher), 0,
				     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, launcher_slots};
	PyType_Spec grid_spec = {"libtl._core.Grid", sizeof(struct grid_object), 0,
				 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, grid_slots};
	PyType_Spec call_spec = {"libtl._core.Call", sizeof(struct call_object), 0,
				 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, call_slots};
	for (int i = 0; i < NUM_OPTIONS; i++)
		if (!(option_names[i] = PyUnicode_InternFromString(options[i].name)))
			return -1;
	launcher_type = add_type(module, &launcher_spec);
	grid_type = add_type(module, &grid_spec);
	call_type = add_type(module, &call_spec);
	return launcher_type && grid_type && call_type ? PyModule_AddFunctions(module, functions) : -1;
}

#include "core.h"

#include "runtime/cache/cache.h"

struct core_names names;

static PyObject *version(PyObject *self, PyObject *args)
{
	(void)self, (void)args;
	return PyUnicode_FromString(tl_version_text());
}

static PyObject *build_identity(PyObject *self, PyObject *args)
{
	(void)self, (void)args;
	return PyUnicode_FromString(tlc_identity());
}

static PyObject *dtype_names(PyObject *self, PyObject *args)
{
	(void)self, (void)args;
	PyObject *all = PyList_New(0);
	for (tl_dtype t = 0; all && tl_dtype_size(t); t++) {
		PyObject *name = PyUnicode_FromString(tl_dtype_name(t));
		if (!name || PyList_Append(all, name))
			Py_CLEAR(all);
		Py_XDECREF(name);
	}
	return all;
}

static PyMethodDef functions[] = {
	{"version", version, METH_NOARGS, "The version of the library, as text."},
	{"build_identity", build_identity, METH_NOARGS, "A text that differs between builds of the compiler."},
	{"dtype_names", dtype_names, METH_NOARGS, "The names of the element types, in the order of tl_dtype."},
	{NULL, NULL, 0, NULL},
};

static bool intern_names(void)
{
	const struct {
		PyObject **at;
		const char *text;
	} all[] = {{&names.untyped_storage, "untyped_storage"},
		   {&names.nbytes, "nbytes"},
		   {&names.data_ptr, "data_ptr"},
		   {&names.fields, "_fields"},
		   {&names.exchange_api, "__dlpack_c_exchange_api__"},
		   {&names.array_struct, "__array_struct__"},
		   {&names.base, "base"},
		   {&names.ctypes, "ctypes"},
		   {&names.kernel_method, "_kernel"},
		   {&names.run_method, "_run"}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!(*all[i].at = PyUnicode_InternFromString(all[i].text)))
			return false;
	return true;
}

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
	static struct PyModuleDef def = {.m_base = PyModuleDef_HEAD_INIT,
					 .m_name = "libtl._core",
					 .m_doc = "The binding of libtl.",
					 .m_size = -1,
					 .m_methods = functions};
	PyObject *m = PyModule_Create(&def);
	if (m && (!intern_names() || objects_init(m) || arguments_init(m) || launcher_init(m) || runner_init(m)))
		Py_CLEAR(m);
	return m;
}

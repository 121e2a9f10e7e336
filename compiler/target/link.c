#include "target/link.h"

#include <dlfcn.h>
#include <llvm-c/LLJIT.h>
#include <stdlib.h>

#include "target/session.h"

/* An object has a name space of its own, since kernels of different sources may have the same name. There is no way to
 * end one by LLVM's C API, so they are used again. */
struct linked {
	struct linked *next; /* that is free */
	LLVMOrcJITDylibRef names;
	LLVMOrcResourceTrackerRef objects;
};

struct linker {
	pthread_mutex_t lock;
	LLVMOrcLLJITRef jit;
	struct linked *free;
	u32 made;
	char missing[200], error[400]; /* of the object that is being added */
};

/* --- symbols ------------------------------------------------------------------------------------------------- */

/* What compiled code may call. They stay open. */
static const char *const libraries[] = {"libm.so.6", "libmvec.so.1", "libc.so.6", "libgcc_s.so.1"};

static void *find_symbol(const char *name)
{
	void *found = NULL;
	for (u32 i = 0; i < ARRAY_LEN(libraries) && !found; i++) {
		void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		found = library ? dlsym(library, name) : NULL;
		if (library)
			dlclose(library);
	}
	return found;
}

static LLVMErrorRef define(LLVMOrcDefinitionGeneratorRef generator, void *linker, LLVMOrcLookupStateRef *state,
			   LLVMOrcLookupKind kind, LLVMOrcJITDylibRef names, LLVMOrcJITDylibLookupFlags flags,
			   LLVMOrcCLookupSet set, size_t n)
{
	struct linker *l = linker;
	LLVMErrorRef e = NULL;
	(void)generator, (void)state, (void)kind, (void)flags;
	for (size_t i = 0; i < n && !e; i++) {
		const char *name = LLVMOrcSymbolStringPoolEntryStr(set[i].Name);
		void *address = find_symbol(name);
		if (!address) {
			snprintf(l->missing, sizeof l->missing, "%s", name);
			continue;
		}
		LLVMOrcRetainSymbolStringPoolEntry(set[i].Name);
		LLVMOrcCSymbolMapPair pair = {
			set[i].Name,
			{(LLVMOrcExecutorAddress)(uintptr_t)address, {LLVMJITSymbolGenericFlagsCallable, 0}}};
		e = LLVMOrcJITDylibDefine(names, LLVMOrcAbsoluteSymbols(&pair, 1));
	}
	return e;
}

/* --- errors -------------------------------------------------------------------------------------------------- */

/* Takes over the error; the first one's text stays. */
static void note_error(void *linker, LLVMErrorRef e)
{
	struct linker *l = linker;
	char *text = LLVMGetErrorMessage(e);
	if (!*l->error)
		snprintf(l->error, sizeof l->error, "%s", text);
	LLVMDisposeErrorMessage(text);
}

static const char *explain(const struct linker *l, struct arena *a)
{
	if (!*l->missing)
		return arena_printf(a, "%s", l->error);
	return arena_printf(a, "the code calls '%s', which none of libm, libmvec, libc and libgcc_s has here",
			    l->missing);
}

/* --- linking ------------------------------------------------------------------------------------------------- */

struct linker *linker_open(struct arena *a, const char **error)
{
	struct llvm_use use;
	struct linker *l = calloc(1, sizeof *l);
	if (!l)
		tl_out_of_memory(sizeof *l);
	llvm_enter(&use);
	LLVMErrorRef e = LLVMOrcCreateLLJIT(&l->jit, NULL);
	if (!e)
		LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(l->jit), note_error, l);
	llvm_leave(&use);
	pthread_mutex_init(&l->lock, NULL);
	if (!e)
		return l;
	note_error(l, e);
	*error = explain(l, a);
	free(l);
	return NULL;
}

void linker_close(struct linker *l)
{
	struct llvm_use use;
	llvm_enter(&use);
	LLVMErrorRef e = LLVMOrcDisposeLLJIT(l->jit);
	if (e)
		note_error(l, e);
	llvm_leave(&use);
	for (struct linked *next; l->free; l->free = next) {
		next = l->free->next;
		free(l->free);
	}
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static struct linked *take_names(struct linker *l)
{
	struct linked *k = l->free;
	char name[24];
	if (k) {
		l->free = k->next;
		return k;
	}
	k = calloc(1, sizeof *k);
	if (!k)
		tl_out_of_memory(sizeof *k);
	snprintf(name, sizeof name, "kernel%u", l->made++);
	k->names = LLVMOrcExecutionSessionCreateBareJITDylib(LLVMOrcLLJITGetExecutionSession(l->jit), name);
	LLVMOrcJITDylibAddGenerator(k->names, LLVMOrcCreateCustomCAPIDefinitionGenerator(define, l, NULL));
	return k;
}

static void remove_object(struct linker *l, struct linked *k)
{
	LLVMErrorRef e = LLVMOrcResourceTrackerRemove(k->objects);
	LLVMOrcReleaseResourceTracker(k->objects);
	if (!e)
		e = LLVMOrcJITDylibClear(k->names); /* what the libraries define for it */
	if (e)
		note_error(l, e);
	k->next = l->free;
	l->free = k;
}

struct found {
	struct linker *linker;
	void *address;
};

static void on_found(LLVMErrorRef e, LLVMOrcCSymbolMapPairs result, size_t n, void *found)
{
	struct found *f = found;
	if (e)
		note_error(f->linker, e);
	else if (n)
		f->address = (void *)(uintptr_t)result[0].Sym.Address;
}

static void *add_object(struct linker *l, struct linked *k, const char *object, size_t len, const char *name)
{
	struct found found = {l, NULL};
	k->objects = LLVMOrcJITDylibCreateResourceTracker(k->names);
	LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, len, name);
	LLVMErrorRef e = LLVMOrcLLJITAddObjectFileWithRT(l->jit, k->objects, buffer);
	if (e) {
		note_error(l, e);
		return NULL;
	}
	LLVMOrcCJITDylibSearchOrderElement where = {k->names, LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
	LLVMOrcCLookupSetElement what = {LLVMOrcLLJITMangleAndIntern(l->jit, name),
					 LLVMOrcSymbolLookupFlagsRequiredSymbol};
	LLVMOrcExecutionSessionLookup(LLVMOrcLLJITGetExecutionSession(l->jit), LLVMOrcLookupKindStatic, &where, 1,
				      &what, 1, on_found, &found);
	return found.address;
}

struct linked *linker_add(struct linker *l, struct arena *a, const char *object, size_t len, const char *name,
			  void **address, const char **error)
{
	struct llvm_use use;
	struct held h;
	llvm_enter(&use);
	lock_hold(&h, &l->lock);
	*l->missing = *l->error = 0;
	struct linked *k = take_names(l);
	*address = add_object(l, k, object, len, name);
	if (!*address) {
		*error = explain(l, a);
		remove_object(l, k);
	}
	lock_release(&h);
	llvm_leave(&use);
	return *address ? k : NULL;
}

void linker_remove(struct linker *l, struct linked *k)
{
	struct llvm_use use;
	struct held h;
	llvm_enter(&use);
	lock_hold(&h, &l->lock);
	remove_object(l, k);
	lock_release(&h);
	llvm_leave(&use);
}

/* Finding the CUDA driver. */
#include "runtime/device/cuda_api.h"

#include <dlfcn.h>

#include "runtime/image/error.h"

tl_status cuda_api_open(struct cuda_api *out, bool *absent)
{
	static const struct {
		const char *symbol;
		size_t offset;
	} table[] = {
#define X(name, symbol, params) {symbol, offsetof(struct cuda_api, name)},
		CUDA_API(X)
		CUDA_API_NEW(X)
#undef X
	};
	static const u32 nnew = 0
#define X(name, symbol, params) +1
		CUDA_API_NEW(X)
#undef X
		;
	/* never closed: closing and reopening the driver's library fails */
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	*absent = !lib;
	if (!lib)
		return failed(TL_ERR_DEVICE, "no CUDA driver: %s", dlerror());
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		void *f = dlsym(lib, table[i].symbol);
		if (!f && i < ARRAY_LEN(table) - nnew)
			return failed(TL_ERR_DRIVER, "this CUDA driver has no %s: it is too old", table[i].symbol);
		memcpy((char *)out + table[i].offset, &f, sizeof f);
	}
	return TL_OK;
}

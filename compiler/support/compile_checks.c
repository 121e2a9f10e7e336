#include "support/compile_checks.h"

#include <stdlib.h>

bool compile_check(const char *name)
{
	const char *at = getenv("TL_COMPILE_CHECK");
	size_t len = strlen(name);
	bool found = false;
	for (; at && *at && !found; at += strcspn(at, ","), at += *at == ',')
		found = strcspn(at, ",") == len && !memcmp(at, name, len);
	return found;
}

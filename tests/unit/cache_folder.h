/* A disk cache of its own for each test: setup and teardown. */
#ifndef TEST_CACHE_FOLDER_H
#define TEST_CACHE_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64];

static inline int new_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/tlc-test-XXXXXX"); /* mkdtemp fills in the end */
	return !mkdtemp(folder) || setenv("TL_CACHE_DIR", folder, 1) || unsetenv("TL_CACHE") || unsetenv("TL_CACHE_MB");
}

static inline int remove_folder(void **state)
{
	(void)state;
	char command[300];
	snprintf(command, sizeof command, "chmod -R u+w %s && rm -rf %s", folder, folder);
	return system(command) || unsetenv("TL_CACHE_DIR");
}

#endif

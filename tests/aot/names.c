/* Reads names, one a line, and writes a header with the declarations that `tlc build` makes of them: functions of each
 * name that it accepts, and a parameter of each. With the argument `accepted`: the names of these functions. */
#include "cli/cmd_build.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	char line[512];
	int n = 0;
	(void)argv;
	if (argc == 1)
		puts("#ifdef __cplusplus\nextern \"C\" {\n#endif");
	while (fgets(line, sizeof line, stdin)) {
		struct arena a = {0};
		line[strcspn(line, "\n")] = 0;
		const char *name = c_function_name(&a, NULL, line), *load = arena_printf(&a, "%s_load", name);
		bool accepted = !c_name_taken(&a, name) && !c_name_taken(&a, load);
		if (argc > 1 && accepted)
			printf("%s\n%s\n", name, load);
		else if (argc == 1 && accepted)
			printf("tl_status %s(tl_compiled *k);\ntl_status %s(tl_compiled *k);\n", name, load);
		if (argc == 1)
			printf("tl_status parameter_%d(int %s);\n", n++, c_parameter_name(&a, line));
		arena_free(&a);
	}
	if (argc == 1)
		puts("#ifdef __cplusplus\n}\n#endif");
	return 0;
}

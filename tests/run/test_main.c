/* test-run: every built-in and language feature on every device that is here. */
#include "themes.h"

int main(int argc, char **argv)
{
	static const struct theme themes[] = {
		{"elementwise", theme_elementwise},
		{"cast", theme_cast},
		{"memory", theme_memory},
		{"reduce", theme_reduce},
		{"scan", theme_scan},
		{"shape", theme_shape},
		{"dot", theme_dot},
		{"matmul", theme_matmul},
		{"weights", theme_weights},
		{"scaled", theme_scaled},
		{"atomic", theme_atomic},
		{"control", theme_control},
		{"program", theme_program},
		{"gather", theme_gather},
		{"table", theme_table},
		{"attention", theme_attention},
		{"alias", theme_alias},
		{"blocks", theme_blocks},
		{"values", theme_values},
		{"composite", theme_composite},
		{"library", theme_library},
		{"device", theme_device},
		{"libdevice", theme_libdevice},
		{"reference", theme_reference},
		{"helpers", theme_helpers},
		{"fusion", theme_fusion},
		{"subnormal", theme_subnormal},
	};
	return run_themes(argc, argv, themes, COUNT(themes));
}

#include "ir/codegen_options.h"

_Static_assert(MAX_NUM_WARPS == 32 && MAX_NUM_STAGES == 64 && MAX_GROUP_PIDS == 1048576 && MAX_MAXNREG == 256,
	       "texts of the rules");

const struct codegen_number codegen_numbers[CODEGEN_NUMBERS] = {
	{"num_warps", DEFAULT_WARPS, 1, MAX_NUM_WARPS, "be a power of two from 1 to 32"},
	{"num_stages", DEFAULT_STAGES, 1, MAX_NUM_STAGES, "be from 1 to 64"},
	{"group_pids", 0, 0, MAX_GROUP_PIDS, "be from 0 to 1048576"},
	{"maxnreg", 0, 0, MAX_MAXNREG, "be from 0 to 256"},
};

int codegen_options_wrong(const struct codegen_options *o)
{
	for (int i = 0; i < CODEGEN_NUMBERS; i++)
		if (o->numbers[i] < codegen_numbers[i].least || o->numbers[i] > codegen_numbers[i].most)
			return i;
	return is_pow2(o->num_warps) ? -1 : 0;
}

void codegen_options_print(struct strbuf *out, const struct codegen_options *o, const struct codegen_options *from,
			   const char *separator)
{
	for (int i = 0; i < CODEGEN_NUMBERS; i++)
		if (o->numbers[i] != from->numbers[i])
			sb_printf(out, "%s%s=%d", out->len ? separator : "", codegen_numbers[i].name, o->numbers[i]);
}

#include "ir/codegen_options.h"

_Static_assert(MAX_NUM_WARPS == 32 && MAX_NUM_STAGES == 64 && MAX_GROUP_PIDS == 1048576 && MAX_MAXNREG == 256,
	       "texts of the rules");

/* of enum fp_fusion and enum flush_to_zero */
static const char *const switch_words[] = {"default", "on", "off"};

const struct codegen_number codegen_numbers[CODEGEN_NUMBERS] = {
	[CODEGEN_WARPS] = {"num_warps", DEFAULT_WARPS, 1, MAX_NUM_WARPS, "be a power of two from 1 to 32", NULL},
	[CODEGEN_STAGES] = {"num_stages", DEFAULT_STAGES, 1, MAX_NUM_STAGES, "be from 1 to 64", NULL},
	[CODEGEN_GROUP_PIDS] = {"group_pids", 0, 0, MAX_GROUP_PIDS, "be from 0 to 1048576", NULL},
	[CODEGEN_MAXNREG] = {"maxnreg", 0, 0, MAX_MAXNREG, "be from 0 to 256", NULL},
	[CODEGEN_FP_FUSION] = {"fp_fusion", FP_FUSION_ON, FP_FUSION_DEFAULT, FP_FUSION_OFF,
			       "be 0 (default), 1 (on) or 2 (off)", switch_words},
	[CODEGEN_FTZ] = {"ftz", FTZ_ON, FTZ_DEFAULT, FTZ_OFF, "be 0 (default), 1 (on) or 2 (off)", switch_words},
};

int codegen_options_wrong(const struct codegen_options *o)
{
	for (int i = 0; i < CODEGEN_NUMBERS; i++)
		if (o->numbers[i] < codegen_numbers[i].least || o->numbers[i] > codegen_numbers[i].most)
			return i;
	return is_pow2(o->num_warps) ? -1 : 0;
}

const char *codegen_number_text(struct arena *a, int number, int value)
{
	const struct codegen_number *n = &codegen_numbers[number];
	if (n->words && value >= n->least && value <= n->most)
		return n->words[value - n->least];
	return arena_printf(a, "%d", value);
}

int codegen_number_of_word(int number, const char *text)
{
	const struct codegen_number *n = &codegen_numbers[number];
	for (int v = n->least; n->words && v <= n->most; v++)
		if (!strcmp(text, n->words[v - n->least]))
			return v;
	return -1;
}

void codegen_options_print(struct strbuf *out, const struct codegen_options *o, const struct codegen_options *from,
			   const char *separator)
{
	for (int i = 0; i < CODEGEN_NUMBERS; i++)
		if (o->numbers[i] != from->numbers[i])
			sb_printf(out, "%s%s=%s", out->len ? separator : "", codegen_numbers[i].name,
				  codegen_number_text(out->arena, i, o->numbers[i]));
}

/* Texts of inline PTX. */
#include "gpu/codegen/nvptx_internal.h"

/* --- operations ---------------------------------------------------------------------------------------------- */

void lower_ptx(struct lower *l, const struct op *o)
{
	/* For each opcode its PTX, whose operands are 32-bit registers. %d stands for the operation's first
	 * attribute. */
	static const struct {
		const char *text;
		enum asm_kind kind;
	} texts[IR_OPCODES] = {
		[IR_ASYNC_COMMIT] = {"cp.async.commit_group;", ASM_EFFECT},
		[IR_ASYNC_WAIT] = {"cp.async.wait_group %d;", ASM_EFFECT},
		[IR_INIT_BARRIER] = {"mbarrier.init.shared.b64 [$0], %d;", ASM_EFFECT},
		[IR_INVAL_BARRIER] = {"mbarrier.inval.shared.b64 [$0];", ASM_EFFECT},
		[IR_BARRIER_EXPECT] = {"mbarrier.arrive.expect_tx.shared.b64 _, [$0], %d;", ASM_EFFECT},
		[IR_WAIT_BARRIER] = {"{\n\t.reg .pred p;\n\tAGAIN:\n\t"
				     "mbarrier.try_wait.parity.shared.b64 p, [$0], $1;\n\t@!p bra AGAIN;\n\t}",
				     ASM_CONVERGENT},
		[IR_GRID_WAIT] = {"griddepcontrol.wait;", ASM_EFFECT},
		[IR_GRID_LAUNCH] = {"griddepcontrol.launch_dependents;", ASM_EFFECT},
	};
	static const char *const constraints[] = {"~{memory}", "r,~{memory}", "r,r,~{memory}"};
	LLVMValueRef args[ARRAY_LEN(constraints) - 1];
	tl_assert(texts[o->code].text);
	u32 n = 0;
	for (u32 i = 0; i < o->noperands; i++)
		if (operand(o, i)->type->kind != TY_TOKEN)
			args[n++] = elem(l, operand(o, i), 0);
	inline_asm(l, arena_printf(&l->scratch, texts[o->code].text, (int)o->attr[0]), constraints[n],
		   texts[o->code].kind, l->v, args, n);
}

/* --- mma ----------------------------------------------------------------------------------------------------- */

/* One row for each instruction of gpu/layout/mma.c. Operands: the results, A, B, and the accumulator tied to the
 * results (PTX ISA, "Warp-level matrix instructions: mma"). */
#define D4 "{$0, $1, $2, $3}"
#define D2 "{$0, $1}"
/* an instruction with four registers of A and two of B */
#define WIDE(name, k, types, reg, acc) \
	{name, \
	 {"mma.sync.aligned.m16n8k" k ".row.col." types " " D4 ", {$4, $5, $6, $7}, {$8, $9}, " D4 ";", \
	  "=" reg ",=" reg ",=" reg ",=" reg ",r,r,r,r,r,r,0,1,2,3", 4, 2, 4, acc}},

static const struct {
	const char *name;
	struct ptx_mma m;
} table[] = {
	WIDE("mma_f16_f32", "16", "f32.f16.f16.f32", "f", DT_F32)
	{"mma_f16_f16",
	 {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 " D2 ", {$2, $3, $4, $5}, {$6, $7}, " D2 ";",
	  "=r,=r,r,r,r,r,r,r,0,1", 4, 2, 2, DT_F16}},
	{"mma_f16_f32_k8",
	 {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 " D4 ", {$4, $5}, {$6}, " D4 ";",
	  "=f,=f,=f,=f,r,r,r,0,1,2,3", 2, 1, 4, DT_F32}},
	{"mma_f16_f16_k8",
	 {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 " D2 ", {$2, $3}, {$4}, " D2 ";", "=r,=r,r,r,r,0,1", 2, 1,
	  2, DT_F16}},
	WIDE("mma_bf16_f32", "16", "f32.bf16.bf16.f32", "f", DT_F32)
	WIDE("mma_tf32_f32", "8", "f32.tf32.tf32.f32", "f", DT_F32)
	WIDE("mma_s8_s32", "32", "s32.s8.s8.s32", "r", DT_I32)
	{"mma_s8_s32_m8",
	 {"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 " D2 ", {$2}, {$3}, " D2 ";", "=r,=r,r,r,0,1", 1, 1, 2,
	  DT_I32}},
	WIDE("mma_e4m3_e4m3", "32", "f32.e4m3.e4m3.f32", "f", DT_F32)
	WIDE("mma_e4m3_e5m2", "32", "f32.e4m3.e5m2.f32", "f", DT_F32)
	WIDE("mma_e5m2_e4m3", "32", "f32.e5m2.e4m3.f32", "f", DT_F32)
	WIDE("mma_e5m2_e5m2", "32", "f32.e5m2.e5m2.f32", "f", DT_F32)
	{"mma_f64_f64",
	 {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 " D2 ", {$2}, {$3}, " D2 ";", "=d,=d,d,d,0,1", 1, 1, 2,
	  DT_F64}},
};

const struct ptx_mma *ptx_mma(const char *name)
{
	for (u32 i = 0; i < ARRAY_LEN(table); i++)
		if (!strcmp(table[i].name, name))
			return &table[i].m;
	tl_unreachable("mma without a text");
}

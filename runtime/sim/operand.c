/* Values of operands: registers, immediates and special registers. */
#include "runtime/sim/cluster.h"

#include <stdlib.h>
#include <string.h>

/* X(code, name). A name that ends in "." stands for the registers of the three axes. */
#define SPECIALS(X)                                                                                                    \
	X(TID, "%tid.") X(NTID, "%ntid.") X(CTAID, "%ctaid.") X(NCTAID, "%nctaid.")                                    \
	X(CLUSTER_CTAID, "%cluster_ctaid.") X(CLUSTER_NCTAID, "%cluster_nctaid.")                                      \
	X(CLUSTERID, "%clusterid.") X(NCLUSTERID, "%nclusterid.")                                                      \
	X(LANEID, "%laneid") X(WARPID, "%warpid") X(NWARPID, "%nwarpid")                                               \
	X(EQ, "%lanemask_eq") X(LE, "%lanemask_le") X(LT, "%lanemask_lt") X(GE, "%lanemask_ge") X(GT, "%lanemask_gt")  \
	X(SMID, "%smid") X(NSMID, "%nsmid") X(GRIDID, "%gridid")                                                       \
	X(CLOCK, "%clock") X(CLOCK64, "%clock64") X(CLOCK_HI, "%clock_hi") X(TIMER, "%globaltimer")                    \
	X(DYNAMIC, "%dynamic_smem_size") X(TOTAL, "%total_smem_size")                                                  \
	X(CLUSTER_RANK, "%cluster_ctarank") X(CLUSTER_NRANK, "%cluster_nctarank") X(EXPLICIT, "%is_explicit_cluster")
#define NAME(code, name) name,
#define CODE(code, name) S_##code,
static const char *const specials[] = {SPECIALS(NAME)};
enum special { SPECIALS(CODE) };
enum { AXES = 3 }; /* the number of a register is AXES * its code + its axis */

int special_register(const char *name)
{
	for (u32 k = 0; k < ARRAY_LEN(specials); k++) {
		size_t len = strlen(specials[k]);
		if (strncmp(specials[k], name, len))
			continue;
		bool has_axes = specials[k][len - 1] == '.';
		if (!has_axes && !name[len])
			return (int)(AXES * k);
		if (has_axes && name[len] >= 'x' && name[len] <= 'z' && !name[len + 1])
			return (int)(AXES * k) + name[len] - 'x';
	}
	return -1;
}

bool special_fits(u64 number, int bits, bool wider)
{
	switch ((enum special)(number / AXES)) {
	case S_EXPLICIT: return bits == 1;
	case S_CLOCK64:
	case S_TIMER: return bits == 64 || (wider && bits > 1);
	case S_GRIDID: return bits > 1;
	default: return bits > 1 && bits <= 32;
	}
}

static u64 special_value(const struct warp *w, u64 number, u32 lane)
{
	const struct cta *b = w->block;
	const struct launch *l = b->launch;
	const u32 *shape = b->cluster->shape;
	u32 bit = 1u << lane, axis = number % AXES;
	switch ((enum special)(number / AXES)) {
	case S_TID: return axis ? 0 : w->id * LANES + lane;
	case S_NTID: return axis ? 1 : b->nwarps * LANES;
	case S_CTAID: return b->id[axis];
	case S_NCTAID: return l->grid[axis];
	case S_CLUSTER_CTAID: return b->id[axis] % shape[axis];
	case S_CLUSTER_NCTAID: return shape[axis];
	case S_CLUSTERID: return b->id[axis] / shape[axis];
	case S_NCLUSTERID: return l->grid[axis] / shape[axis];
	case S_LANEID: return lane;
	case S_WARPID: return w->id;
	case S_NWARPID: return b->nwarps;
	case S_EQ: return bit;
	case S_LT: return bit - 1;
	case S_LE: return bit | (bit - 1);
	case S_GE: return ~(u64)(bit - 1) & ALL_LANES;
	case S_GT: return ~(u64)(bit | (bit - 1)) & ALL_LANES;
	case S_NSMID: return 132;
	case S_SMID: return (b->id[0] + b->id[1] * l->grid[0]) % 132;
	case S_CLOCK:
	case S_CLOCK64:
	case S_TIMER: return b->steps;
	case S_DYNAMIC: return l->dynamic_shared;
	case S_TOTAL: return b->shared_bytes;
	case S_CLUSTER_RANK: return b->rank;
	case S_CLUSTER_NRANK: return b->cluster->nblocks;
	case S_EXPLICIT: return l->cluster[0] || l->kernel->cluster[0];
	default: return 0; /* registers that are always 0 */
	}
}

static u64 float_bits(const struct operand *o, int bits)
{
	double d;
	float f;
	u32 f_bits = (u32)o->imm;
	if (o->wide == (bits == 64))
		return low_bits(o->imm, bits);
	if (o->wide) {
		memcpy(&d, &o->imm, 8);
		f = (float)d;
		memcpy(&f_bits, &f, 4);
		return f_bits;
	}
	memcpy(&f, &f_bits, 4);
	d = f;
	u64 r;
	memcpy(&r, &d, 8);
	return r;
}

u64 operand_value(const struct warp *w, const struct operand *o, u32 lane, int bits)
{
	switch (o->kind) {
	case O_REG: return low_bits(w->regs[(size_t)o->reg * LANES + lane], bits) ^ o->negated;
	case O_INT: return bits == 1 ? o->imm != 0 : low_bits(o->imm, bits);
	case O_FLOAT: return float_bits(o, bits);
	case O_SPECIAL: return low_bits(special_value(w, o->imm, lane), bits) ^ o->negated;
	case O_SYMBOL: return o->var ? low_bits(o->var->offset + o->imm, bits) : 0;
	default: tl_unreachable("operand without a value");
	}
}

const u64 *operand_lanes(const struct warp *w, const struct operand *o, int bits, u64 space[LANES])
{
	if (o->kind == O_REG && ptx_bits(o->reg_type) <= bits && !o->negated)
		return &w->regs[(size_t)o->reg * LANES];
	if (o->kind == O_SPECIAL || o->kind == O_REG) {
		for (u32 l = 0; l < LANES; l++)
			space[l] = operand_value(w, o, l, bits);
		return space;
	}
	u64 v = operand_value(w, o, 0, bits);
	for (u32 l = 0; l < LANES; l++)
		space[l] = v;
	return space;
}

/* Values of operands: registers, immediates and special registers. */
#include "runtime/sim/cluster.h"

#include <stdlib.h>
#include <string.h>

static const char *const specials[] = {
	"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x",
	"%nctaid.y", "%nctaid.z",
	"%laneid", "%warpid", "%nwarpid", "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge",
	"%lanemask_gt", "%smid", "%nsmid",
	"%gridid", "%clock", "%clock64", "%clock_hi", "%globaltimer", "%dynamic_smem_size", "%total_smem_size",
	"%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z", "%cluster_nctaid.x", "%cluster_nctaid.y",
	"%cluster_nctaid.z",
	"%clusterid.x", "%clusterid.y", "%clusterid.z", "%nclusterid.x", "%nclusterid.y", "%nclusterid.z",
	"%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster",
};
enum special {
	S_TID,
	S_NTID = 3,
	S_CTAID = 6,
	S_NCTAID = 9,
	S_LANEID = 12,
	S_WARPID,
	S_NWARPID,
	S_EQ,
	S_LE,
	S_LT,
	S_GE,
	S_GT,
	S_SMID,
	S_NSMID,
	S_GRIDID,
	S_CLOCK,
	S_CLOCK64,
	S_CLOCK_HI,
	S_TIMER,
	S_DYNAMIC,
	S_TOTAL,
	S_CLUSTER_CTAID,
	S_CLUSTER_NCTAID = S_CLUSTER_CTAID + 3,
	S_CLUSTERID = S_CLUSTER_NCTAID + 3,
	S_NCLUSTERID = S_CLUSTERID + 3,
	S_CLUSTER_RANK = S_NCLUSTERID + 3,
	S_CLUSTER_NRANK,
	S_EXPLICIT,
};

int special_register(const char *name)
{
	for (u32 i = 0; i < ARRAY_LEN(specials); i++)
		if (!strcmp(specials[i], name))
			return (int)i;
	return -1;
}

bool special_is_predicate(u64 number)
{
	return number == S_EXPLICIT;
}

static u64 special_value(const struct warp *w, u64 which, u32 lane)
{
	const struct cta *b = w->block;
	const struct launch *l = b->launch;
	const u32 *shape = b->cluster->shape;
	u32 bit = 1u << lane;
	switch (which) {
	case S_TID: return w->id * LANES + lane;
	case S_NTID: return b->nwarps * LANES;
	case S_NTID + 1:
	case S_NTID + 2: return 1;
	case S_CTAID:
	case S_CTAID + 1:
	case S_CTAID + 2: return b->id[which - S_CTAID];
	case S_NCTAID:
	case S_NCTAID + 1:
	case S_NCTAID + 2: return l->grid[which - S_NCTAID];
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
	case S_CLUSTER_CTAID:
	case S_CLUSTER_CTAID + 1:
	case S_CLUSTER_CTAID + 2: return b->id[which - S_CLUSTER_CTAID] % shape[which - S_CLUSTER_CTAID];
	case S_CLUSTER_NCTAID:
	case S_CLUSTER_NCTAID + 1:
	case S_CLUSTER_NCTAID + 2: return shape[which - S_CLUSTER_NCTAID];
	case S_CLUSTERID:
	case S_CLUSTERID + 1:
	case S_CLUSTERID + 2: return b->id[which - S_CLUSTERID] / shape[which - S_CLUSTERID];
	case S_NCLUSTERID:
	case S_NCLUSTERID + 1:
	case S_NCLUSTERID + 2: return l->grid[which - S_NCLUSTERID] / shape[which - S_NCLUSTERID];
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
	case O_REG: return low_bits(w->regs[(size_t)o->reg * LANES + lane], bits);
	case O_INT: return low_bits(o->imm, bits);
	case O_FLOAT: return float_bits(o, bits);
	case O_SPECIAL: return low_bits(special_value(w, o->imm, lane), bits);
	case O_SYMBOL: return o->var ? low_bits(o->var->offset + o->imm, bits) : 0;
	default: tl_unreachable("operand without a value");
	}
}

const u64 *operand_lanes(const struct warp *w, const struct operand *o, int bits, u64 space[LANES])
{
	if (o->kind == O_REG && ptx_bits(o->reg_type) <= bits)
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

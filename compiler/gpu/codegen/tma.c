/* TMA copies of tiles of global memory, and the mbarriers that signal their completion.
 *
 * The tensor map of a TMA_TENSOR_COPY describes a tensor of the kernel's user. The tensor map of a TMA_COPY describes
 * all of memory from address 0, in four dimensions: the elements of a row, rows at the tile's row stride, pieces of a
 * row as wide as the swizzle, and pages. A TMA coordinate has 32 bits, so an address is split: its page (address /
 * 2^LOG2_PAGE bytes, 16 MiB) and its element in the page. The four coordinates are (element in the page, 0, 0, page),
 * however the pointer was computed, and no access is out of bounds. The host only fills in the row stride. A tensor
 * that begins after the address of a parameter, as in a batch, has its own two dimensions and bounds, and as third and
 * fourth dimension units (2^LOG2_UNIT bytes) in a page and pages, relative to the parameter. These are not relative to
 * address 0, since an H200 touches a map's first element for TMA tiles that are out of bounds as a whole. A
 * one-dimensional TMA_COPY has no map: it is a bulk copy of bytes. PTX ISA, "Tensors"; CUDA driver API,
 * cuTensorMapEncodeTiled. */
#include "support/thresholds.h"
#include "ir/launch_product.h"
#include "gpu/codegen/nvptx_internal.h"

enum { LOG2_PAGE = TENSOR_MAP_LOG2_PAGE, LOG2_UNIT = TENSOR_MAP_LOG2_UNIT };

/* --- tensor maps --------------------------------------------------------------------------------------------- */

static struct launch_product product_of(const struct kernel *k, struct value *v)
{
	struct launch_product p;
	bool known = is_host_sum(k, v, &p);
	tl_assert(known);
	return p;
}

static struct tensor_map_param map_of(const struct kernel *k, const struct op *o)
{
	const struct type *t = operand(o, 1)->type;
	int along = (int)o->attr[ATTR_ALONG];
	bool bounded = o->code == IR_TMA_TENSOR_COPY;
	u32 by = bounded ? 7 : 3;
	struct tensor_map_param m = {.tensor = -1, .elem_bytes = dtype_bytes(type_dtype(t))};
	if (o->noperands > by)
		m.distance = product_of(k, operand(o, by));
	else
		m.distance.times = 1;
	m.distance.times *= o->attr[ATTR_STRIDE];
	m.swizzle = MIN(t->shape[along] * m.elem_bytes, 128);
	m.box[0] = m.swizzle / m.elem_bytes;
	m.box[1] = t->shape[1 - along];
	m.box[2] = t->shape[along] / m.box[0];
	if (!bounded)
		return m;
	m.box[2] = 1; /* each swizzle-wide piece of a row is a separate copy: the tensor's rows may end in any piece */
	m.tensor = param_number(k, operand(o, 0));
	for (int i = 0; i < 2; i++)
		m.sizes[i] = product_of(k, operand(o, (u32)(i == 0 ? 5 + along : 6 - along)));
	m.narrow = (i32)o->attr[ATTR_NARROW];
	m.moved = o->noperands > 8u + (o->attr[ATTR_COPY_PAIR] != 0);
	/* each block of a CTA pair copies half of the tile: half of the pieces, or of the rows if a row is one piece */
	if (o->attr[ATTR_COPY_PAIR] && t->shape[along] == m.box[0])
		m.box[1] /= 2;
	return m;
}

static bool is_row(const struct op *copy)
{
	return operand(copy, 1)->type->rank == 1;
}

static void add_map(struct op *o, void *arg)
{
	struct kernel *k = arg;
	if (!op_is_tensor_copy(o) || is_row(o))
		return;
	struct tensor_map_param m = map_of(k, o);
	for (o->mark = 0; o->mark < k->cuda.nmaps; o->mark++)
		if (!memcmp(&k->cuda.maps[o->mark], &m, sizeof m))
			return;
	tl_assert(k->cuda.nmaps < MAX_TENSOR_MAPS);
	k->cuda.maps[k->cuda.nmaps++] = m;
}

void collect_tensor_maps(struct kernel *k)
{
	k->cuda.nmaps = 0;
	walk(k->body, add_map, k);
}

static LLVMValueRef tensor_map(struct lower *l, u32 i)
{
	i32 tensor = l->k->cuda.maps[i].tensor;
	return LLVMGetParam(l->fn, is_foreign(l->k) ? l->number[tensor] : l->k->nparams + i);
}

/* --- mbarriers ----------------------------------------------------------------------------------------------- */

/* i1: true in one thread, of the producer warp or else of the block, chosen by elect.sync so that ptxas knows it is a
 * single thread. With a comparison of thread numbers, ptxas may put a loop over all lanes around each TMA copy. */
static LLVMValueRef is_first_thread(struct lower *l)
{
	static const char text[] = "{\n\t.reg .pred one;\n\telect.sync _|one, -1;\n\tselp.b32 $0, 1, 0, one;\n\t}";
	LLVMValueRef one = inline_asm(l, text, "=r", ASM_CONVERGENT, l->i32, NULL, 0);
	/* a warp of the last warpgroup, which under ping-pong scheduling runs after the other one: when it has read a
	 * buffer, the other has too, and the buffer can be refilled */
	LLVMValueRef warp = c_i32(l, MAX(l->k->num_warps - 4, 0)),
		     elected = LLVMBuildICmp(l->b, LLVMIntNE, one, c_i32(l, 0), "");
	return l->in_partition ? elected : and_i1(l, LLVMBuildICmp(l->b, LLVMIntEQ, l->warp, warp, ""), elected);
}

void lower_one_thread(struct lower *l, const struct op *o)
{
	LLVMValueRef condition = elem(l, operand(o, 0), 0);
	struct guarded g = begin_if(l->b, and_i1(l, is_first_thread(l), condition));
	lower_block(l, o->blocks[0]);
	end_if(l->b, &g);
	/* after this barrier ptxas assumes a converged warp, and keeps warp-uniform values in uniform registers */
	inline_asm(l, "bar.warp.sync -1;", "~{memory}", ASM_CONVERGENT, l->v, NULL, 0);
}

void prefetch_tensor_maps(struct lower *l)
{
	if (!l->k->cuda.more_warps)
		return;
	struct guarded g =
		begin_if(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, l->thread, c_i32(l, 32 * l->k->num_warps), ""));
	for (u32 i = 0; i < l->k->cuda.nmaps; i++) {
		LLVMValueRef map = tensor_map(l, i);
		inline_asm(l, "prefetch.tensormap [$0];", "l", ASM_EFFECT, l->v, &map, 1);
	}
	end_if(l->b, &g);
}

/* Changes the number of registers of each thread (setmaxnreg; 0: no change). All warps of a warpgroup must execute it.
 * change: "inc" or "dec". */
static void set_registers(struct lower *l, const char *change, i64 registers)
{
	if (registers)
		inline_asm(
			l,
			arena_printf(&l->scratch, "setmaxnreg.%s.sync.aligned.u32 %lld;", change, (long long)registers),
			"~{memory}", ASM_CONVERGENT, l->v, NULL, 0);
}

void lower_partition(struct lower *l, const struct op *o)
{
	struct guarded apart = begin_if(l->b, LLVMBuildICmp(l->b, LLVMIntUGE, l->warp, c_i32(l, l->k->num_warps), ""));
	set_registers(l, "dec", o->attr[ATTR_REGISTERS]);
	struct guarded one = begin_if(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, l->warp, c_i32(l, l->k->num_warps), ""));
	l->in_partition = true;
	lower_block(l, o->blocks[0]);
	l->in_partition = false;
	end_if(l->b, &one);
	LLVMBuildRetVoid(l->b);
	LLVMPositionBuilderAtEnd(l->b, apart.end);
	set_registers(l, "inc", o->attr[ATTR_OTHER_REGISTERS]);
	l->meet = 32 * l->k->num_warps;
}

/* After all lanes of the warp, lanes 0 and 1 arrive at the mbarrier of the pair's block 0 and 1. If operand 1 (i1) is
 * false, the block has no partner, and both lanes arrive at its own mbarrier, which expects as many arrivals. The
 * instruction names no scope: cluster scope would fence all memory. */
static void arrive_at_both(struct lower *l, const struct op *o)
{
	LLVMValueRef own = number_below(l, "llvm.nvvm.read.ptx.sreg.cluster.ctarank", 2);
	LLVMValueRef rank = LLVMBuildSelect(l->b, elem(l, operand(o, 1), 0), l->lane, own, "");
	LLVMValueRef args[] = {l->lane, elem(l, operand(o, 0), 0), rank};
	inline_asm(
		l,
		"{\n\t.reg .pred p;\n\t.reg .b32 a;\n\tsetp.lt.u32 p, $0, 2;\n\t@p mapa.shared::cluster.u32 a, $1, $2;"
		"\n\tbar.warp.sync 0xffffffff;\n\t@p mbarrier.arrive.shared::cluster.b64 _, [a];\n\t}",
		"r,r,r,~{memory}", ASM_CONVERGENT, l->v, args, 3);
}

/* Lane 0 arrives at the mbarrier for the warp, after all lanes have come here. */
void lower_arrive_barrier(struct lower *l, const struct op *o)
{
	if (o->noperands > 1) {
		arrive_at_both(l, o);
		return;
	}
	LLVMValueRef first = LLVMBuildICmp(l->b, LLVMIntEQ, l->lane, c_i32(l, 0), "");
	LLVMValueRef arrives = LLVMBuildZExt(l->b, first, l->i32, ""), args[] = {arrives, elem(l, operand(o, 0), 0)};
	inline_asm(l,
		   "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, $0, 0;\n\tbar.warp.sync 0xffffffff;\n"
		   "\t@p mbarrier.arrive.shared.b64 _, [$1];\n\t}",
		   "r,r,~{memory}", ASM_CONVERGENT, l->v, args, 2);
}

static LLVMValueRef address(struct lower *l, const struct value *ptr)
{
	return LLVMBuildPtrToInt(l->b, elem(l, ptr, 0), l->i64, "");
}

/* The number of the page (2^LOG2_PAGE bytes) of an address, or of an offset from a parameter, in bytes: a coordinate of
 * the tensor map (see above). *place: the offset within the page, in units of 2^log2 bytes. */
static LLVMValueRef page_of(struct lower *l, LLVMValueRef at, int log2, LLVMValueRef *place)
{
	LLVMValueRef page =
		LLVMBuildTrunc(l->b, LLVMBuildLShr(l->b, at, LLVMConstInt(l->i64, LOG2_PAGE, false), ""), l->i32, "");
	LLVMValueRef x = LLVMBuildAnd(l->b, LLVMBuildTrunc(l->b, at, l->i32, ""), c_i32(l, (1u << LOG2_PAGE) - 1), "");
	*place = LLVMBuildLShr(l->b, x, c_i32(l, (u32)log2), "");
	return page;
}

static void copy_row(struct lower *l, const struct op *o)
{
	const struct type *t = operand(o, 1)->type;
	LLVMValueRef to = elem(l, operand(o, 1), 0), from = elem(l, operand(o, 0), 0);
	LLVMValueRef bytes = c_i32(l, (u32)(t->shape[0] * dtype_bytes(type_dtype(t))));
	LLVMValueRef args[] = {to, from, bytes, elem(l, operand(o, 2), 0)};
	inline_asm(l, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
		   "r,l,r,r,~{memory}", ASM_EFFECT, l->v, args, 4);
}

void lower_tma_copy(struct lower *l, const struct op *o)
{
	if (is_row(o)) {
		copy_row(l, o);
		return;
	}
	const struct tensor_map_param *m = &l->k->cuda.maps[o->mark];
	LLVMValueRef x, page = page_of(l, address(l, operand(o, 0)), ilog2((u64)m->elem_bytes), &x);
	LLVMValueRef to = elem(l, operand(o, 1), 0), map = tensor_map(l, o->mark);
	LLVMValueRef args[] = {to, map, x, c_i32(l, 0), page, elem(l, operand(o, 2), 0)};
	inline_asm(l,
		   "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$2, "
		   "$3, $3, $4}], [$5];",
		   "r,l,r,r,r,r,~{memory}", ASM_EFFECT, l->v, args, 6);
}

/* Copies one piece of a TMA tile to shared memory `to`. full: the mbarrier that counts its bytes. place: its
 * coordinates in the tensor map: element in the row, row, then unit and page relative to the parameter (NULL if the
 * tensor begins at the parameter). pair: NULL, or two conditions (i1): this block multicasts the piece to both blocks
 * of the CTA pair; this block copies it for itself only. */
static void copy_piece(struct lower *l, LLVMValueRef to, LLVMValueRef map, LLVMValueRef full, LLVMValueRef *place,
		       const LLVMValueRef *pair)
{
	LLVMValueRef args[9] = {to, map, place[0], place[1], full};
	u32 n = 5;
	for (u32 i = 2; place[2] && i < 4; i++)
		args[n++] = place[i];
	const char *copy = place[2]
				   ? "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
				   : "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
		   *at = place[2] ? "[$0], [$1, {$2, $3, $5, $6}], [$4]" : "[$0], [$1, {$2, $3}], [$4]",
		   *registers = place[2] ? "r,l,r,r,r,r,r" : "r,l,r,r,r",
		   *text = arena_printf(&l->scratch, "%s %s;", copy, at);
	if (pair)
		text = arena_printf(&l->scratch,
				    "{\n\t.reg .pred both, own;\n\t.reg .b16 blocks;\n\tsetp.ne.b32 both, $%u, 0;\n\t"
				    "setp.ne.b32 own, $%u, 0;\n\tmov.b16 blocks, 3;\n\t@both %s.multicast::cluster %s, "
				    "blocks;\n\t@own %s %s;\n\t}",
				    n, n + 1, copy, at, copy, at);
	for (u32 i = 0; pair && i < 2; i++)
		args[n++] = LLVMBuildZExt(l->b, pair[i], l->i32, "");
	inline_asm(l, text, arena_printf(&l->scratch, "%s%s,~{memory}", registers, pair ? ",r,r" : ""), ASM_EFFECT,
		   l->v, args, n);
}

/* Copies a TMA tile piece by piece. A block of a CTA pair multicasts its half of the pieces to both blocks if both read
 * the same tile (the last operand, i1), or copies all pieces for itself. */
void lower_tma_tensor_copy(struct lower *l, const struct op *o)
{
	const struct tensor_map_param *m = &l->k->cuda.maps[o->mark];
	const struct type *t = operand(o, 1)->type;
	int along = (int)o->attr[ATTR_ALONG];
	u32 piece_bytes = (u32)(m->box[0] * m->box[1] * m->elem_bytes);
	LLVMValueRef place[4] = {0}, same = NULL, rank = NULL, pair[2];
	if (m->moved) {
		LLVMValueRef base = address(l, operand(o, 0));
		LLVMValueRef by = LLVMBuildSub(l->b, address(l, operand(o, 8)), base, "");
		place[3] = page_of(l, by, LOG2_UNIT, &place[2]);
	}
	if (o->attr[ATTR_COPY_PAIR]) {
		same = elem(l, operand(o, o->noperands - 1), 0);
		rank = number_below(l, "llvm.nvvm.read.ptx.sreg.cluster.ctarank", 2);
		pair[1] = LLVMBuildNot(l->b, same, "");
	}
	i32 columns = t->shape[along] / m->box[0], pieces = columns * (t->shape[1 - along] / m->box[1]);
	for (i32 i = 0; i < pieces; i++) {
		LLVMValueRef to = c_i32(l, (u32)i * piece_bytes), row = elem(l, operand(o, 4 - (u32)along), 0);
		LLVMValueRef at = gep(l->b, elem(l, operand(o, 1), 0), l->i8, to);
		place[0] = LLVMBuildAdd(l->b, elem(l, operand(o, 3 + (u32)along), 0), c_i32(l, i % columns * m->box[0]),
					"");
		place[1] = i < columns ? row : LLVMBuildAdd(l->b, row, c_i32(l, i / columns * m->box[1]), "");
		if (same)
			pair[0] = LLVMBuildAnd(l->b, same,
					       LLVMBuildICmp(l->b, LLVMIntEQ, rank, c_i32(l, 2 * i >= pieces), ""), "");
		copy_piece(l, at, tensor_map(l, o->mark), elem(l, operand(o, 2), 0), place,
			   same ? pair : NULL);
	}
}

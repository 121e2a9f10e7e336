/* Stores that bypass the caches.
 *
 * An output much larger than the last-level cache is evicted before it is read again. Storing it in the cache costs a
 * read of each line and evicts inputs. So whole vector registers of tiles that the kernel does not load are stored by
 * non-temporal instructions, if the programs of a launch together store more than 1/PART of the cache. The launch
 * passes its grid and the cache size (cpu_call). */
#include "cpu/cpu_abi.h"
#include "cpu/cpu_internal.h"
#include "analysis/alias.h"

/* With inputs as large as outputs, outputs of 1/PART of the cache are evicted by the end of the launch. */
enum { PART = 2 };

/* Whether a load in b may read the memory that o stores, or b has an atomic or another operation that orders
 * memory accesses (cpu_orders). */
static bool is_read(struct cpu_codegen *h, const struct block *b, const struct op *o)
{
	for (const struct op *p = b->first; p; p = p->next) {
		for (u32 i = 0; i < p->nblocks; i++)
			if (is_read(h, p->blocks[i], o))
				return true;
		if (cpu_orders(p) || p->code == IR_ATOMIC_RMW || p->code == IR_ATOMIC_CAS)
			return true;
		if (p->code == IR_LOAD &&
		    may_overlap(h->s, pointer_base(operand(o, 0)), pointer_base(operand(p, 0)), false))
			return true;
	}
	return false;
}

bool cpu_streams(struct cpu_codegen *h, const struct op *o)
{
	return o->code == IR_STORE && type_is_tensor(operand(o, 0)->type) && o->attr[ATTR_EVICT] != EVICT_LAST &&
	       h->s->target->level != CPU_NEON && !h->s->target->checks && !is_read(h, h->k->body, o);
}

static u64 bytes_streamed(struct cpu_codegen *h, const struct block *b)
{
	u64 n = 0;
	for (const struct op *o = b->first; o; o = o->next) {
		for (u32 i = 0; i < o->nblocks; i++)
			n += bytes_streamed(h, o->blocks[i]);
		if (!cpu_streams(h, o))
			continue;
		const struct type *t = operand(o, 1)->type;
		n += (u64)type_numel(t) * (u64)dtype_bytes(type_dtype(t));
	}
	return n;
}

static LLVMValueRef field(struct cpu_codegen *h, size_t at)
{
	LLVMValueRef x = cpu_load_at(h, h->entry, h->i32, h->call, (i64)at);
	return LLVMBuildZExt(h->entry, x, h->i64, "");
}

void cpu_stream_begin(struct cpu_codegen *h)
{
	u64 bytes = bytes_streamed(h, h->k->body);
	if (!bytes)
		return;
	LLVMValueRef n = LLVMConstInt(h->i64, bytes, false), cache = field(h, offsetof(struct cpu_call, cache_kib));
	for (u32 d = 0; d < 3; d++)
		n = LLVMBuildMul(h->entry, n, field(h, offsetof(struct cpu_call, grid) + 4 * d), "");
	LLVMValueRef part = LLVMBuildMul(h->entry, cache, cpu_i64(h, 1024 / PART), "");
	LLVMValueRef known = LLVMBuildICmp(h->entry, LLVMIntNE, cache, cpu_i64(h, 0), "");
	h->streams = LLVMBuildAnd(h->entry, LLVMBuildICmp(h->entry, LLVMIntUGT, n, part, ""), known, "");
}

void cpu_stream_store(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef p, u32 bytes)
{
	u32 vector = (u32)h->s->target->vector_bytes;
	LLVMBasicBlockRef past = new_block(h->b), plain = new_block(h->b), end = new_block(h->b);
	LLVMValueRef address = LLVMBuildPtrToInt(h->b, p, h->i64, ""),
		     low = LLVMBuildAnd(h->b, address, cpu_i64(h, vector - 1), "");
	LLVMValueRef aligned = LLVMBuildICmp(h->b, LLVMIntEQ, low, cpu_i64(h, 0), "");
	LLVMBuildCondBr(h->b, LLVMBuildAnd(h->b, h->streams, aligned, ""), past, plain);
	LLVMPositionBuilderAtEnd(h->b, past);
	LLVMValueRef store = LLVMBuildStore(h->b, x, p), one = cpu_i32(h, 1);
	LLVMSetAlignment(store, vector);
	LLVMSetMetadata(store, LLVMGetMDKindIDInContext(h->ctx, "nontemporal", 11),
			LLVMMetadataAsValue(h->ctx, LLVMMDNodeInContext2(
							    h->ctx, (LLVMMetadataRef[]){LLVMValueAsMetadata(one)}, 1)));
	LLVMBuildBr(h->b, end);
	LLVMPositionBuilderAtEnd(h->b, plain);
	LLVMSetAlignment(LLVMBuildStore(h->b, x, p), bytes);
	LLVMBuildBr(h->b, end);
	LLVMPositionBuilderAtEnd(h->b, end);
}

void cpu_stream_end(struct cpu_codegen *h)
{
	if (!h->streams)
		return;
	struct guarded g = begin_if(h->b, h->streams);
	call_intrinsic(h->b, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
	end_if(h->b, &g);
}

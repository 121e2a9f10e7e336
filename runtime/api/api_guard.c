#include "runtime/api/api_guard.h"

#include <stdio.h>

bool begin_call(const tl_context *ctx)
{
	error_clear();
	return !ctx || !atomic_load_explicit(&ctx->broken, memory_order_acquire);
}

tl_status guard_begin(struct guard *g, tl_context *ctx)
{
	if (!begin_call(ctx))
		return failed(TL_ERR_INTERNAL,
			      "this context can only be destroyed, because an earlier call ended with an %s", ctx->why);
	g->ctx = ctx;
	g->store = ctx ? ctx->store : NULL;
	if (g->store && !store_enter(g->store))
		return failed(TL_ERR_DEVICE, "other threads were using this context when the process was forked\n"
					     "      = hint: create a context in the child");
	error_recovery(&g->recovery);
	recovery_begin(&g->recovery);
	return TL_OK;
}

tl_status guard_caught(struct guard *g)
{
	tl_status s = error_of_fault(g->recovery.fault);
	tl_context *ctx = g->ctx;
	if (g->store)
		store_leave(g->store);
	if (s == TL_ERR_INTERNAL && g->recovery.in_doubt && ctx && !atomic_exchange(&ctx->marked, true)) {
		const char *text = tl_error(ctx);
		snprintf(ctx->why, sizeof ctx->why, "%.*s", (int)strcspn(text, "\n"), text);
		atomic_store_explicit(&ctx->broken, true, memory_order_release);
	}
	return s;
}

tl_status guard_end(struct guard *g, tl_status s)
{
	recovery_end(&g->recovery);
	if (g->store)
		store_leave(g->store);
	if (!s)
		error_call_succeeded();
	return s;
}

bool destruction_begin(struct guard *g, const tl_context *ctx, char *text, size_t size)
{
	g->store = ctx ? ctx->store : NULL;
	if (g->store && !store_enter(g->store))
		return false;
	g->recovery.text = text;
	g->recovery.size = size;
	recovery_begin(&g->recovery);
	return true;
}

void destruction_end(const struct guard *g)
{
	if (g->store)
		store_leave(g->store);
}

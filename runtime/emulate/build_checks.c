#include "runtime/emulate/build_checks.h"

#include <math.h>
#include <time.h>

#include "runtime/image/params.h"
#include "support/compile_checks.h"
#include "support/recover.h"

enum { MOST_SECONDS = 10 /* of a compilation on one core; kernels of tests take up to 4, public ones up to 1 */ };

double seconds_of_thread(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void check_time(double begin)
{
	if (compile_check("time"))
		tl_assert(seconds_of_thread() - begin <= MOST_SECONDS);
}

static void free_unit(void *u)
{
	unit_free(u);
}

/* Estimates a launch in which the integer arguments have this value; 0: they are not known. */
static void check_estimate(const struct target *target, const struct build *b, i64 value)
{
	i64 leaf[MAX_KERNEL_PARAMS];
	bool known[MAX_KERNEL_PARAMS];
	struct unit u = {0};
	struct compiled out = {0};
	struct build other = *b;
	struct cleanup c;
	for (u32 i = 0; i < MAX_KERNEL_PARAMS; i++) {
		leaf[i] = value;
		known[i] = value != 0;
	}
	other.unit = &u;
	other.launch = &(struct launch_shape){
		.grid = {7, 3, 2}, .nleaves = MAX_KERNEL_PARAMS, .leaf = leaf, .is_known = known};
	cleanup_push(&c, free_unit, &u);
	unit_again(&u, b->unit);
	if (device_compile(target, &other, &out)) {
		const struct launch_estimate *e = &out.estimate;
		tl_assert(e->us > 0 && isfinite(e->us) && e->resident > 0 && e->bill.bytes >= 0);
	}
	cleanup_run(&c);
}

void check_estimates(const struct target *target, const struct build *b)
{
	if (!compile_check("estimates") || b->stage || b->launch || target->kind != TARGET_CUDA || target->lines)
		return;
	check_estimate(target, b, 0);
	check_estimate(target, b, 100);
	check_estimate(target, b, 100000);
}

/* libamx.so: the instructions of tile registers on processors that have none, for LD_PRELOAD.
 *
 * The system seems to lend the registers' state; the signal of an undefined instruction carries it out, if it is one of
 * theirs, on registers of the thread's own. A program that has carried out none fails. Where the system does lend the
 * state, the processor carries them out. Intel SDM, volume 2: LDTILECFG,
 * TILELOADD, TILESTORED, TILEZERO, TILERELEASE, TDPBF16PS, TDPBSSD. */
#if defined(__x86_64__)
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static struct sigaction others;
static atomic_int *used; /* by this process or those that it makes */
static pid_t first;
static _Thread_local uint8_t tiles[8][16][64];
static _Thread_local uint8_t config[64];

static int row_bytes(int t)
{
	return config[16 + 2 * t] | config[17 + 2 * t] << 8;
}
static int rows(int t)
{
	return config[48 + t];
}

static float at_bf16(const uint8_t *p)
{
	uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 24;
	float x;
	memcpy(&x, &bits, 4);
	return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

static void add_bf16(uint8_t *c, const uint8_t *a, const uint8_t *b)
{
	float sum;
	memcpy(&sum, c, 4);
	sum += fmaf(at_bf16(a), at_bf16(b), at_bf16(a + 2) * at_bf16(b + 2));
	memcpy(c, &sum, 4);
}

static void add_int8(uint8_t *c, const uint8_t *a, const uint8_t *b)
{
	uint32_t sum;
	memcpy(&sum, c, 4);
	for (int i = 0; i < 4; i++)
		sum += (uint32_t)((int8_t)a[i] * (int8_t)b[i]);
	memcpy(c, &sum, 4);
}

static void multiply(int c, int a, int b, void (*add)(uint8_t *, const uint8_t *, const uint8_t *))
{
	if (rows(c) != rows(a) || row_bytes(c) != row_bytes(b) || row_bytes(a) != 4 * rows(b))
		abort();
	for (int m = 0; m < rows(c); m++)
		for (int k = 0; k < rows(b); k++)
			for (int n = 0; n < row_bytes(c); n += 4)
				add(tiles[c][m] + n, tiles[a][m] + 4 * k, tiles[b][k] + n);
}

struct operand {
	int reg, is_register, bytes; /* of ModRM and what follows it */
	uint64_t base, stride;
};

static struct operand decode(const uint8_t *modrm, int x, int b, const greg_t *regs)
{
	static const int names[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
				      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	int mod = modrm[0] >> 6, rm = modrm[0] & 7;
	struct operand o = {.reg = modrm[0] >> 3 & 7, .is_register = mod == 3 ? rm : -1, .bytes = 1};
	if (mod == 3)
		return o;
	int wide = mod == 2;
	int base = rm | b << 3;
	if (rm == 4) {
		int sib = modrm[o.bytes++], index = (sib >> 3 & 7) | x << 3;
		base = (sib & 7) | b << 3;
		o.stride = index == 4 ? 0 : (uint64_t)regs[names[index]] << (sib >> 6);
	}
	if (mod == 0 && (base & 7) == 5) {
		wide = 1;
		/* of the next instruction, whose opcode and prefixes are four bytes before */
		o.base = rm == 5 ? (uint64_t)(uintptr_t)modrm + 5 : 0;
	} else {
		o.base = (uint64_t)regs[names[base]];
	}
	if (wide) {
		int32_t d;
		memcpy(&d, modrm + o.bytes, 4);
		o.base += (uint64_t)(int64_t)d;
		o.bytes += 4;
	} else if (mod == 1) {
		o.base += (uint64_t)(int64_t)(int8_t)modrm[o.bytes++];
	}
	return o;
}

/* The bytes of the instruction at p, carried out; 0: it is none of theirs. */
static int carry_out(const uint8_t *p, const greg_t *regs)
{
	enum { NONE, P66, F3, F2 };
	if (p[0] != 0xC4 || (p[1] & 0x1F) != 2 || p[2] & 0x84) /* of three bytes, 0F38, W0, 128 bits */
		return 0;
	struct operand o = decode(p + 4, !(p[1] & 0x40), !(p[1] & 0x20), regs);
	int prefix = p[2] & 3, third = ~p[2] >> 3 & 15, t = o.reg;
	uint8_t *memory = (uint8_t *)(uintptr_t)o.base;
	if (p[3] == 0x49 && prefix == NONE && o.is_register < 0) {
		memcpy(config, memory, sizeof config);
		memset(tiles, 0, sizeof tiles);
	} else if (p[3] == 0x49 && prefix == NONE) {
		memset(config, 0, sizeof config);
	} else if (!config[0]) { /* there are no registers */
		return 0;
	} else if (p[3] == 0x49 && prefix == F2) {
		memset(tiles[t], 0, sizeof tiles[t]);
	} else if (p[3] == 0x4B && prefix == F2) {
		memset(tiles[t], 0, sizeof tiles[t]);
		for (int i = 0; i < rows(t); i++)
			memcpy(tiles[t][i], memory + (uint64_t)i * o.stride, (size_t)row_bytes(t));
	} else if (p[3] == 0x4B && prefix == F3) {
		for (int i = 0; i < rows(t); i++)
			memcpy(memory + (uint64_t)i * o.stride, tiles[t][i], (size_t)row_bytes(t));
	} else if (p[3] == 0x5C && prefix == F3) {
		multiply(t, o.is_register, third, add_bf16);
	} else if (p[3] == 0x5E && prefix == F2) {
		multiply(t, o.is_register, third, add_int8);
	} else {
		return 0;
	}
	return 4 + o.bytes;
}

static void on_undefined(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	int bytes = carry_out((const uint8_t *)regs[REG_RIP], regs);
	regs[REG_RIP] += bytes;
	if (bytes) {
		*used = 1;
		return;
	}
	if (others.sa_flags & SA_SIGINFO)
		others.sa_sigaction(number, info, context);
	else if (others.sa_handler != SIG_DFL && others.sa_handler != SIG_IGN)
		others.sa_handler(number);
	else
		abort();
}

int sigaction(int number, const struct sigaction *restrict act, struct sigaction *restrict old)
{
	int (*next)(int, const struct sigaction *, struct sigaction *);
	*(void **)&next = dlsym(RTLD_NEXT, "sigaction");
	if (number != SIGILL)
		return next(number, act, old);
	if (old)
		*old = others;
	if (act)
		others = *act;
	return 0;
}

long syscall(long number, ...)
{
	enum { REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
	long (*next)(long, ...), a[6];
	va_list list;
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	long r = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (number != SYS_arch_prctl || a[0] != REQ_XCOMP_PERM || a[1] != XTILEDATA)
		return r;
	if (!r) /* the processor has the registers: nothing of theirs is undefined */
		*used = 1;
	return 0;
}

__attribute__((constructor)) static void begin(void)
{
	int (*next)(int, const struct sigaction *, struct sigaction *);
	struct sigaction a = {.sa_sigaction = on_undefined, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	*(void **)&next = dlsym(RTLD_NEXT, "sigaction");
	next(SIGILL, &a, NULL);
	used = mmap(NULL, sizeof *used, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (used == MAP_FAILED)
		abort();
	first = getpid();
}

__attribute__((destructor)) static void end(void)
{
	if (getpid() == first && !*used) {
		fflush(NULL);
		fputs("no instruction of tile registers was carried out\n", stderr);
		_exit(1);
	}
}
#endif

/* The names in the C sources of `tlc build`: valid in C and C++, whatever the names of kernels and parameters are. */
#include <ctype.h>
#include <dlfcn.h>
#include <gnu/lib-names.h>

#include "cli/cmd_build.h"

/* Names that have a meaning in each program, or in each program that includes a standard header. Functions of the C
 * library are looked up in the library. tests/names.sh compares the list with the headers and libraries of the
 * system. */
static const char words[] =
	/* keywords of C and C++, with the names that no function of a program may have */
	" alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t"
	" char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr"
	" constinit continue contract_assert decltype default delete do double dynamic_cast else enum explicit"
	" export extern false float for friend goto if inline int long main mutable namespace new noexcept not"
	" not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires"
	" restrict return short signed sizeof static static_assert static_cast std struct switch template this"
	" thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using"
	" virtual void volatile wchar_t while xor xor_eq"
	/* defined by linkers, start-up code and the static part of the C library */
	" _edata _end _etext _fini _init _start at_quick_exit atexit"
	/* macros and constants of standard headers, and of compilers; builtin functions; one of another library */
	" P_tmpdir alloca assert assert_perror atomic_compare_exchange_strong"
	" atomic_compare_exchange_strong_explicit atomic_compare_exchange_weak"
	" atomic_compare_exchange_weak_explicit atomic_exchange atomic_exchange_explicit atomic_fetch_add"
	" atomic_fetch_add_explicit atomic_fetch_and atomic_fetch_and_explicit atomic_fetch_or"
	" atomic_fetch_or_explicit atomic_fetch_sub atomic_fetch_sub_explicit atomic_fetch_xor"
	" atomic_fetch_xor_explicit atomic_flag_clear atomic_flag_clear_explicit atomic_flag_test_and_set"
	" atomic_flag_test_and_set_explicit atomic_init atomic_is_lock_free atomic_load atomic_load_explicit"
	" atomic_signal_fence atomic_store atomic_store_explicit atomic_thread_fence be16toh be32toh be64toh"
	" ckd_add ckd_mul ckd_sub complex crypt errno fpclassify h_errno htobe16 htobe32 htobe64 htole16"
	" htole32 htole64 i386 imaginary isascii_l iseqsig isfinite isgreater isgreaterequal isless"
	" islessequal islessgreater isnormal issignaling issubnormal isunordered iszero kill_dependency"
	" le16toh le32toh le64toh linux major makedev math_errhandling memory_order_acq_rel"
	" memory_order_acquire memory_order_consume memory_order_relaxed memory_order_release"
	" memory_order_seq_cst minor mtx_plain mtx_recursive mtx_timed noreturn offsetof pow10 pow10f pow10l"
	" sa_handler sa_sigaction sched_priority setjmp si_addr si_addr_lsb si_arch si_band si_call_addr si_fd"
	" si_int si_lower si_overrun si_pid si_pkey si_ptr si_status si_stime si_syscall si_timerid si_uid"
	" si_upper si_utime si_value sigev_notify_attributes sigev_notify_function sigmask signbit sigsetjmp"
	" st_atime st_ctime st_mtime strdupa strndupa thrd_busy thrd_error thrd_nomem thrd_success"
	" thrd_timedout toascii_l unix unreachable va_arg va_copy va_end va_start"
	/* types of standard headers */
	" atomic_bool atomic_char atomic_char16_t atomic_char32_t atomic_char8_t atomic_flag atomic_int"
	" atomic_int_fast16_t atomic_int_fast32_t atomic_int_fast64_t atomic_int_fast8_t atomic_int_least16_t"
	" atomic_int_least32_t atomic_int_least64_t atomic_int_least8_t atomic_intmax_t atomic_intptr_t"
	" atomic_llong atomic_long atomic_ptrdiff_t atomic_schar atomic_short atomic_size_t atomic_uchar"
	" atomic_uint atomic_uint_fast16_t atomic_uint_fast32_t atomic_uint_fast64_t atomic_uint_fast8_t"
	" atomic_uint_least16_t atomic_uint_least32_t atomic_uint_least64_t atomic_uint_least8_t"
	" atomic_uintmax_t atomic_uintptr_t atomic_ullong atomic_ulong atomic_ushort atomic_wchar_t blkcnt64_t"
	" blkcnt_t blksize_t caddr_t clock_t clockid_t cnd_t comparison_fn_t cookie_close_function_t"
	" cookie_io_functions_t cookie_read_function_t cookie_seek_function_t cookie_write_function_t"
	" cpu_set_t daddr_t dev_t div_t double_t error_t fd_mask fd_set femode_t fenv_t fexcept_t float_t"
	" fpos64_t fpos_t fpregset_t fsblkcnt64_t fsblkcnt_t fsfilcnt64_t fsfilcnt_t fsid_t gid_t greg_t"
	" gregset_t id_t imaxdiv_t ino64_t ino_t int16_t int32_t int64_t int8_t int_fast16_t int_fast32_t"
	" int_fast64_t int_fast8_t int_least16_t int_least32_t int_least64_t int_least8_t intmax_t intptr_t"
	" jmp_buf key_t ldiv_t lldiv_t locale_t loff_t max_align_t mbstate_t mcontext_t memory_order mode_t"
	" mtx_t nlink_t nullptr_t off64_t off_t once_flag pid_t ptrdiff_t quad_t register_t sem_t sig_atomic_t"
	" sig_t sigevent sigevent_t sighandler_t siginfo_t sigjmp_buf sigset_t sigval_t size_t socklen_t"
	" ssize_t stack_t suseconds_t thrd_start_t thrd_t time_t timer_t tss_dtor_t tss_t u_char u_int"
	" u_int16_t u_int32_t u_int64_t u_int8_t u_long u_quad_t u_short ucontext_t uid_t uint uint16_t"
	" uint32_t uint64_t uint8_t uint_fast16_t uint_fast32_t uint_fast64_t uint_fast8_t uint_least16_t"
	" uint_least32_t uint_least64_t uint_least8_t uintmax_t uintptr_t ulong useconds_t ushort va_list"
	" wctrans_t wctype_t wint_t ";

/* A name with ASCII letters and digits only: "é.0" → u00e9_0. */
static const char *plain_name(struct arena *a, const char *name)
{
	struct strbuf out = sb_empty(a);
	for (const u8 *s = (const u8 *)name; *s; s++) {
		u32 more = *s < 0xC0 ? 0 : *s < 0xE0 ? 1 : *s < 0xF0 ? 2 : 3, code = more ? *s & (0x3F >> more) : *s;
		for (; more && (s[1] & 0xC0) == 0x80; more--)
			code = code << 6 | (*++s & 0x3F);
		if (code >= 0x80)
			sb_printf(&out, "u%04x", code);
		else
			sb_printf(&out, "%c", isalnum((int)code) ? (char)code : '_');
	}
	return out.at;
}

const char *c_function_name(struct arena *a, const char *prefix, const char *name)
{
	return arena_printf(a, "%s%s", prefix ? prefix : "", plain_name(a, name));
}

/* No reserved word of C ends in one underscore unless it begins with two. */
const char *c_parameter_name(struct arena *a, const char *name)
{
	return arena_printf(a, "%s%s_", *name == '_' ? "arg" : "", plain_name(a, name));
}

static bool is_word(struct arena *a, const char *name)
{
	return strstr(words, arena_printf(a, " %s ", name));
}

static bool in_c_library(const char *name)
{
	void *library = dlopen(LIBM_SO, RTLD_LAZY | RTLD_LOCAL); /* looks up symbols of libc too */
	bool found = library && dlsym(library, name);
	if (library)
		dlclose(library);
	return found;
}

/* True for names with the form of macros: without small letters, or with a prefix as in M_PIf, L_tmpnam and PRId64. */
static bool in_capitals(const char *name)
{
	static const char *const begins[] = {"M_", "L_", "PRI", "SCN"};
	bool small = false;
	for (const char *s = name; *s; s++)
		small |= islower((u8)*s) != 0;
	for (u32 i = 0; i < ARRAY_LEN(begins) && small; i++) {
		size_t n = strlen(begins[i]);
		small = strncmp(name, begins[i], n);
	}
	return !small;
}

const char *c_name_taken(struct arena *a, const char *name)
{
	if (!isalpha((u8)*name) && *name != '_')
		return "begins with a digit";
	if (*name == '_' && (name[1] == '_' || isupper((u8)name[1])))
		return "begins with an underscore as the names of compilers and C libraries do";
	if (!strncmp(name, "tl_", 3) || !strncmp(name, "pthread_", 8))
		return "begins as the names in tl.h and pthread.h do";
	if (in_capitals(name))
		return "is in capitals as macros are";
	if (is_word(a, name))
		return "is a word of C or C++, or a macro or type of their headers";
	return in_c_library(name) ? "is a function of the C library" : NULL;
}

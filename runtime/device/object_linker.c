/* The linker of compiled CPU code.
 *
 * Sections that occupy memory are copied into one mapping: code, constants and variables, on separate pages. The code
 * is followed by a procedure linkage table (PLT), with an entry for each symbol: a jump, and its target address,
 * because libraries may be out of range of a call. The address is also the symbol's slot of the global offset table
 * (GOT). */
#include "runtime/device/object_linker.h"

#include <dlfcn.h>
#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ENTRY_SIZE = 16 }; /* bytes of a PLT entry; ENTRY_ADDRESS: offset of the address in an entry */

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64, ENTRY_ADDRESS = 6 };
static const u8 entry_code[ENTRY_ADDRESS] = {0xFF, 0x25, 0, 0, 0, 0}; /* jmp *(%rip) */
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64, ENTRY_ADDRESS = 8 };
static const u8 entry_code[ENTRY_ADDRESS] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1F, 0xD6}; /* ldr x16, .+8; br x16 */
#else
enum { MACHINE = EM_NONE, ENTRY_ADDRESS = 0 };
static const u8 entry_code[1];
#endif

struct linked {
	u8 *memory;
	size_t bytes, code;
	u64 *sections; /* the address of each, or 0 */
};

struct linking {
	struct arena *arena;
	const u8 *object;
	size_t len;
	const Elf64_Ehdr *head;
	const Elf64_Shdr *sections;
	const Elf64_Sym *symbols;
	u32 nsymbols;
	const char *names; /* of symbols */
	size_t names_len;
	u8 **at; /* the address of each section in memory, or NULL */
	u8 *plt; /* an entry for each symbol */
	const char *error;
};

/* --- the object -------------------------------------------------------------------------------------------------- */

static bool damaged(struct linking *l)
{
	l->error = "the object is damaged";
	return false;
}

static bool inside(const struct linking *l, u64 offset, u64 bytes)
{
	return offset <= l->len && bytes <= l->len - offset;
}

static const char *name_of(const struct linking *l, const Elf64_Sym *s)
{
	return s->st_name < l->names_len ? l->names + s->st_name : "";
}

static bool read_tables(struct linking *l)
{
	const Elf64_Ehdr *e = l->head = (const Elf64_Ehdr *)l->object;
	if (l->len < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_ident[EI_CLASS] != ELFCLASS64 ||
	    e->e_type != ET_REL || e->e_shentsize != sizeof(Elf64_Shdr) || e->e_shoff % 8 ||
	    !inside(l, e->e_shoff, (u64)e->e_shnum * sizeof(Elf64_Shdr)))
		return damaged(l);
	if (e->e_machine != MACHINE) {
		l->error = "the object is for another CPU architecture";
		return false;
	}
	l->sections = (const Elf64_Shdr *)(l->object + e->e_shoff);
	for (u32 i = 0; i < e->e_shnum; i++) {
		const Elf64_Shdr *s = &l->sections[i];
		if (s->sh_type != SHT_NOBITS && !inside(l, s->sh_offset, s->sh_size))
			return damaged(l);
		if (s->sh_addralign > 4096 || s->sh_size > UINT32_MAX)
			return damaged(l);
		if (s->sh_type != SHT_SYMTAB)
			continue;
		if (s->sh_offset % 8 || s->sh_link >= e->e_shnum)
			return damaged(l);
		const Elf64_Shdr *names = &l->sections[s->sh_link];
		l->symbols = (const Elf64_Sym *)(l->object + s->sh_offset);
		l->nsymbols = (u32)(s->sh_size / sizeof(Elf64_Sym));
		l->names = (const char *)l->object + names->sh_offset;
		l->names_len = names->sh_size;
		if (!inside(l, names->sh_offset, names->sh_size) || !l->names_len || l->names[l->names_len - 1])
			return damaged(l);
	}
	return true;
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static int kind_of(const Elf64_Shdr *s)
{
	return s->sh_flags & SHF_EXECINSTR ? 0 : s->sh_flags & SHF_WRITE ? 2 : 1;
}

/* Computes the start of each kind of section, and the end: code and PLT, constants, variables. */
static bool place_sections(struct linking *l, struct linked *out, size_t from[4])
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), end = 0, plt = 0;
	size_t *offset = arena_array(l->arena, size_t, l->head->e_shnum + 1u);
	for (int kind = 0; kind < 3; kind++) {
		from[kind] = end;
		for (u32 i = 0; i < l->head->e_shnum; i++) {
			const Elf64_Shdr *s = &l->sections[i];
			size_t align = MAX(s->sh_addralign, 1u);
			if (!(s->sh_flags & SHF_ALLOC) || kind_of(s) != kind)
				continue;
			offset[i] = (end + align - 1) / align * align;
			end = offset[i] + s->sh_size;
		}
		if (!kind) {
			plt = (end + ENTRY_SIZE - 1) / ENTRY_SIZE * ENTRY_SIZE;
			end = plt + (size_t)l->nsymbols * ENTRY_SIZE;
		}
		end = (end + page - 1) / page * page;
	}
	from[3] = end;
	l->at = arena_array(l->arena, u8 *, l->head->e_shnum + 1u);
	void *p = mmap(NULL, MAX(end, page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		l->error = "out of memory";
		return false;
	}
	out->memory = p;
	out->bytes = MAX(end, page);
	l->plt = out->memory + plt;
	for (u32 i = 0; i < l->head->e_shnum; i++) {
		const Elf64_Shdr *s = &l->sections[i];
		l->at[i] = s->sh_flags & SHF_ALLOC ? out->memory + offset[i] : NULL;
		if (l->at[i] && s->sh_type != SHT_NOBITS && s->sh_size)
			memcpy(l->at[i], l->object + s->sh_offset, s->sh_size);
	}
	return true;
}

static bool protect(struct linking *l, const struct linked *out, const size_t from[4])
{
	static const int access[] = {PROT_READ | PROT_EXEC, PROT_READ};
	for (int kind = 0; kind < 2; kind++)
		if (from[kind + 1] > from[kind] &&
		    mprotect(out->memory + from[kind], from[kind + 1] - from[kind], access[kind])) {
			l->error = "the system refuses to execute generated code";
			return false;
		}
	__builtin___clear_cache((char *)out->memory, (char *)out->memory + from[1]);
	return true;
}

/* --- symbols ----------------------------------------------------------------------------------------------------- */

/* The libraries whose functions compiled code may call. They stay open. */
static const char *const libraries[] = {"libm.so.6", "libmvec.so.1", "libc.so.6", "libgcc_s.so.1"};

static void *find_symbol(const char *name)
{
	void *found = NULL;
	for (u32 i = 0; i < ARRAY_LEN(libraries) && !found; i++) {
		void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		found = library ? dlsym(library, name) : NULL;
		if (library)
			dlclose(library);
	}
	return found;
}

/* The symbol's address, cached in its PLT entry; 0: not looked up yet. */
static u64 address_of(struct linking *l, u32 symbol)
{
	const Elf64_Sym *s = &l->symbols[symbol];
	u8 *entry = l->plt + (size_t)symbol * ENTRY_SIZE;
	u64 address;
	memcpy(&address, entry + ENTRY_ADDRESS, sizeof address);
	if (address)
		return address;
	if (s->st_shndx == SHN_UNDEF) {
		address = (u64)(uintptr_t)find_symbol(name_of(l, s));
		if (!address)
			l->error = arena_printf(
				l->arena,
				"the code calls '%s', which libm, libmvec, libc and libgcc_s do not have here",
				name_of(l, s));
	} else if (s->st_shndx == SHN_ABS) {
		address = s->st_value;
	} else if (s->st_shndx < l->head->e_shnum && l->at[s->st_shndx] &&
		   s->st_value <= l->sections[s->st_shndx].sh_size) {
		address = (u64)(uintptr_t)l->at[s->st_shndx] + s->st_value;
	} else {
		damaged(l);
	}
	memcpy(entry, entry_code, ENTRY_ADDRESS);
	memcpy(entry + ENTRY_ADDRESS, &address, sizeof address);
	return address;
}

/* --- relocations ------------------------------------------------------------------------------------------------- */

struct relocation {
	u8 *at;
	u64 room; /* bytes from the place to the end of the section */
	u32 type;
	u64 symbol, entry, slot; /* addresses */
	bool outside;            /* defined outside of the object */
	i64 addend;
};

static bool put(struct linking *l, const struct relocation *p, u64 x, u32 bytes)
{
	if (bytes > p->room)
		return damaged(l);
	memcpy(p->at, &x, bytes);
	return true;
}

static bool put_near(struct linking *l, const struct relocation *p, u64 target)
{
	i64 distance = (i64)(target + (u64)p->addend - (u64)(uintptr_t)p->at);
	if (distance != (i32)distance) {
		l->error = "the object is too large";
		return false;
	}
	return put(l, p, (u64)distance, 4);
}

static bool unknown_type(struct linking *l, u32 type)
{
	l->error = arena_printf(l->arena, "the object has relocations of type %u, which are not known", type);
	return false;
}

#if defined(__x86_64__)
/* System V ABI, AMD64 supplement, "Relocation Types". */
static bool relocate(struct linking *l, const struct relocation *p)
{
	switch (p->type) {
	case R_X86_64_NONE: return true;
	case R_X86_64_64: return put(l, p, p->symbol + (u64)p->addend, 8);
	case R_X86_64_PC64: return put(l, p, p->symbol + (u64)p->addend - (u64)(uintptr_t)p->at, 8);
	case R_X86_64_PC32:
	case R_X86_64_PLT32: return put_near(l, p, p->outside ? p->entry : p->symbol);
	case R_X86_64_GOTPCREL:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX: return put_near(l, p, p->slot);
	default: return unknown_type(l, p->type);
	}
}
#elif defined(__aarch64__)
/* Writes bits `from` to `from + n - 1` of x into the instruction, from bit `to` on. */
static bool put_bits(struct linking *l, const struct relocation *p, u64 x, u32 from, u32 n, u32 to)
{
	u32 code, mask = (u32)((1ull << n) - 1) << to;
	if (p->room < sizeof code)
		return damaged(l);
	memcpy(&code, p->at, sizeof code);
	code = (code & ~mask) | ((u32)(x >> from << to) & mask);
	memcpy(p->at, &code, sizeof code);
	return true;
}

static bool put_page(struct linking *l, const struct relocation *p, u64 target)
{
	u64 pages = (target >> 12) - ((u64)(uintptr_t)p->at >> 12);
	return put_bits(l, p, pages, 0, 2, 29) && put_bits(l, p, pages, 2, 19, 5);
}

/* ELF for the Arm 64-bit Architecture, "Relocation". */
static bool relocate(struct linking *l, const struct relocation *p)
{
	u64 x = p->symbol + (u64)p->addend;
	switch (p->type) {
	case R_AARCH64_NONE: return true;
	case R_AARCH64_ABS64: return put(l, p, x, 8);
	case R_AARCH64_PREL64: return put(l, p, x - (u64)(uintptr_t)p->at, 8);
	case R_AARCH64_PREL32: return put_near(l, p, p->symbol);
	case R_AARCH64_ADR_PREL_PG_HI21: return put_page(l, p, x);
	case R_AARCH64_ADD_ABS_LO12_NC:
	case R_AARCH64_LDST8_ABS_LO12_NC: return put_bits(l, p, x, 0, 12, 10);
	case R_AARCH64_LDST16_ABS_LO12_NC: return put_bits(l, p, x, 1, 11, 10);
	case R_AARCH64_LDST32_ABS_LO12_NC: return put_bits(l, p, x, 2, 10, 10);
	case R_AARCH64_LDST64_ABS_LO12_NC: return put_bits(l, p, x, 3, 9, 10);
	case R_AARCH64_LDST128_ABS_LO12_NC: return put_bits(l, p, x, 4, 8, 10);
	case R_AARCH64_ADR_GOT_PAGE: return put_page(l, p, p->slot);
	case R_AARCH64_LD64_GOT_LO12_NC: return put_bits(l, p, p->slot, 3, 9, 10);
	case R_AARCH64_CALL26:
	case R_AARCH64_JUMP26: return put_bits(l, p, (p->outside ? p->entry : x) - (u64)(uintptr_t)p->at, 2, 26, 0);
	default: return unknown_type(l, p->type);
	}
}
#else
static bool relocate(struct linking *l, const struct relocation *p)
{
	return unknown_type(l, p->type);
}
#endif

static bool relocate_section(struct linking *l, const Elf64_Shdr *s)
{
	const Elf64_Rela *r = (const Elf64_Rela *)(l->object + s->sh_offset);
	if (s->sh_info >= l->head->e_shnum || s->sh_offset % 8)
		return damaged(l);
	u8 *base = l->at[s->sh_info];
	u64 bytes = l->sections[s->sh_info].sh_size;
	for (u64 i = 0; base && i < s->sh_size / sizeof *r; i++) {
		u32 symbol = ELF64_R_SYM(r[i].r_info);
		if (symbol >= l->nsymbols || r[i].r_offset > bytes)
			return damaged(l);
		u64 entry = (u64)(uintptr_t)(l->plt + (size_t)symbol * ENTRY_SIZE);
		struct relocation p = {.at = base + r[i].r_offset,
				  .room = bytes - r[i].r_offset,
				  .type = ELF64_R_TYPE(r[i].r_info),
				  .symbol = symbol ? address_of(l, symbol) : 0,
				  .entry = entry,
				  .slot = entry + ENTRY_ADDRESS,
				  .outside = l->symbols[symbol].st_shndx == SHN_UNDEF,
				  .addend = r[i].r_addend};
		if (l->error || !relocate(l, &p))
			return false;
	}
	return true;
}

static bool relocate_all(struct linking *l)
{
	for (u32 i = 0; i < l->head->e_shnum; i++)
		if (l->sections[i].sh_type == SHT_RELA && !relocate_section(l, &l->sections[i]))
			return false;
	return true;
}

/* --- linking ----------------------------------------------------------------------------------------------------- */

/* The defined symbol with this name and type in a section with these flags; 0: there is none. */
static u32 find_defined(const struct linking *l, const char *name, int type, u64 flags)
{
	u32 found = 0;
	for (u32 i = 1; i < l->nsymbols && !found; i++) {
		const Elf64_Sym *s = &l->symbols[i];
		if (ELF64_ST_TYPE(s->st_info) == type && s->st_shndx < l->head->e_shnum &&
		    l->sections[s->st_shndx].sh_flags & flags && !strcmp(name_of(l, s), name))
			found = i;
	}
	return found;
}

static void *find_function(struct linking *l, const char *name)
{
	u32 symbol = find_defined(l, name, STT_FUNC, SHF_EXECINSTR);
	if (symbol)
		return (void *)(uintptr_t)address_of(l, symbol);
	l->error = arena_printf(l->arena, "the object has no function '%s'", name);
	return NULL;
}

struct linked *link_object(struct arena *a, const void *object, size_t len, const char *name, void **address,
			   const char **error)
{
	/* tables are read in place */
	struct linking l = {
		.arena = a, .object = (uintptr_t)object % 8 ? arena_dup(a, object, len) : object, .len = len};
	struct linked *out = calloc(1, sizeof *out);
	size_t from[4];
	if (!out)
		tl_out_of_memory(sizeof *out);
	*address = NULL;
	if (read_tables(&l) && place_sections(&l, out, from) && relocate_all(&l) &&
	    (*address = find_function(&l, name)) && !protect(&l, out, from))
		*address = NULL;
	out->code = *address ? from[1] : 0;
	out->sections = *address ? calloc(l.head->e_shnum, sizeof *out->sections) : NULL;
	for (u32 i = 0; out->sections && i < l.head->e_shnum; i++)
		out->sections[i] = (u64)(uintptr_t)l.at[i];
	if (*address)
		return out;
	*error = l.error;
	unlink_object(out);
	return NULL;
}

const u8 *object_constant(const void *object, size_t len, const char *name, size_t *bytes)
{
	struct linking l = {.object = object, .len = len};
	u32 symbol = !((uintptr_t)object % 8) && read_tables(&l) ? find_defined(&l, name, STT_OBJECT, SHF_ALLOC) : 0;
	if (!symbol)
		return NULL;
	const Elf64_Sym *s = &l.symbols[symbol];
	const Elf64_Shdr *in = &l.sections[s->st_shndx];
	*bytes = s->st_size;
	bool inside = s->st_value <= in->sh_size && s->st_size <= in->sh_size - s->st_value;
	return in->sh_type == SHT_PROGBITS && inside ? l.object + in->sh_offset + s->st_value : NULL;
}

char *linked_file(const struct linked *linked, const void *object, size_t len)
{
	char *file = linked->sections ? malloc(len) : NULL;
	if (!file)
		return NULL;
	memcpy(file, object, len);
	Elf64_Ehdr head;
	memcpy(&head, file, sizeof head);
	for (u32 i = 0; i < head.e_shnum; i++)
		memcpy(file + head.e_shoff + i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_addr),
		       &linked->sections[i], sizeof *linked->sections);
	return file;
}

size_t linked_code(const struct linked *linked, const void **from)
{
	*from = linked->memory;
	return linked->code;
}

void unlink_object(struct linked *linked)
{
	if (linked->memory)
		munmap(linked->memory, linked->bytes);
	free(linked->sections);
	free(linked);
}

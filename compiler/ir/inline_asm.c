#include "ir/inline_asm.h"

#include <ctype.h>

int asm_class_bits(char class)
{
	switch (class) {
	case 'b': return 1;
	case 'h': return 16;
	case 'r':
	case 'f': return 32;
	case 'l':
	case 'd': return 64;
	case 'q': return 128;
	default: return 0;
	}
}

/* --- constraints ----------------------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t\n");
}

/* Reads one constraint, which ends at a comma or at the end of the text. */
static const char *read_constraint(const char **text, struct asm_form *form)
{
	const char *s = skip_blanks(*text);
	bool output = *s == '=';
	char class;
	u8 tied = 0;
	if (*s == '~') { /* a clobber */
		s += strcspn(s, ",");
		*text = s;
		return NULL;
	}
	s += output;
	s += output && *s == '&';
	if (!output && isdigit((unsigned char)*s)) {
		tied = (u8)(*s - '0' + 1);
		if (tied > form->outputs)
			return "a constraint refers to an output that does not exist";
		class = form->class[tied - 1];
	} else {
		class = *s == 'c' ? 'h' : *s == 'N' ? 'l' : *s;
	}
	if (!asm_class_bits(class))
		return "a constraint must be b, h, r, l, f, d or q, preceded by '=' for an output";
	s = skip_blanks(s + 1);
	if (*s && *s != ',')
		return "a constraint must be b, h, r, l, f, d or q, preceded by '=' for an output";
	if (output && form->inputs)
		return "the constraints of outputs must come before those of inputs";
	if (form->outputs + form->inputs == MAX_ASM_REGISTERS)
		return "more than 256 registers";
	form->class[form->outputs + form->inputs] = class;
	form->tied[form->outputs + form->inputs] = tied;
	*(output ? &form->outputs : &form->inputs) += 1;
	*text = s;
	return NULL;
}

const char *asm_read_form(const char *text, struct asm_form *form)
{
	*form = (struct asm_form){0};
	while (*(text = skip_blanks(text))) {
		const char *what = read_constraint(&text, form);
		if (what)
			return what;
		text += *text == ',';
	}
	return NULL;
}

/* Checks that each dollar sign is part of $0, ${0} or $$. */
static const char *check_text(const char *s, u32 registers)
{
	while ((s = strchr(s, '$'))) {
		s++;
		if (*s == '$') {
			s++;
			continue;
		}
		bool braced = *s == '{';
		s += braced;
		if (!isdigit((unsigned char)*s))
			return "a '$' in the text is not followed by an operand number; write '$$' for a dollar sign";
		u32 n = 0;
		for (; isdigit((unsigned char)*s) && n < MAX_ASM_REGISTERS; s++)
			n = 10 * n + (u32)(*s - '0');
		if (n >= registers)
			return "the text has an operand that no constraint describes";
		if (braced && *s != '}')
			return "an operand '${' in the text is not closed";
	}
	return NULL;
}

static const char *check_registers(const struct type *t, u32 pack, const struct asm_form *form, u32 *at)
{
	int bits = type_elem_bits(t);
	if (bits == 1 && pack > 1)
		return "elements of one bit cannot be packed";
	for (u32 i = 0; i < asm_registers(t, pack); i++, ++*at)
		if (asm_class_bits(form->class[*at]) < bits * (int)asm_elements(t, pack))
			return "a constraint's register is narrower than its elements";
	return NULL;
}

u32 inline_asm_results(const struct op *o)
{
	u32 n = 0;
	for (u32 i = 0; i < o->nresults; i++)
		n += asm_registers(o->results[i].type, (u32)o->attr[ATTR_PACK]);
	return n;
}

u32 inline_asm_operands(const struct op *o)
{
	u32 n = 0;
	for (u32 i = 0; i < o->noperands; i++)
		n += asm_registers(operand(o, i)->type, (u32)o->attr[ATTR_PACK]);
	return n;
}

const char *inline_asm_form(const struct op *o, struct asm_form *form)
{
	i64 pack = o->attr[ATTR_PACK];
	u32 at = 0;
	const char *what = asm_read_form((const char *)(uintptr_t)o->attr[ATTR_CONSTRAINTS], form);
	what = what ? what : check_text(o->text, form->outputs + form->inputs);
	if (what)
		return what;
	if (!is_pow2(pack) || pack > MAX_ASM_REGISTERS)
		return "pack must be a power of two, at most 256";
	if (inline_asm_results(o) != form->outputs)
		return "the number of output constraints is not the number of registers of the results";
	if (inline_asm_operands(o) != form->inputs)
		return "the number of input constraints is not the number of registers of the arguments";
	for (u32 i = 0; i < o->nresults && !what; i++)
		what = check_registers(o->results[i].type, (u32)pack, form, &at);
	for (u32 i = 0; i < o->noperands && !what; i++)
		what = check_registers(operand(o, i)->type, (u32)pack, form, &at);
	return what;
}

/* --- known assembly -------------------------------------------------------------------------------------------- */

enum asm_source inline_asm_source(const struct op *o)
{
	static const struct {
		const char *name;
		enum asm_source source;
	} known[] = {{"%globaltimer", ASM_TIMER}, {"%clock64", ASM_CLOCK}, {"%clock", ASM_CLOCK}, {"%smid", ASM_SM}};
	const char *s = skip_blanks(o->text);
	if (strncmp(s, "mov.", 4)) /* the text has no operands */
		return ASM_UNKNOWN;
	s += 4;
	s += strspn(s, "bsu");
	s += strspn(s, "0123456789");
	s = skip_blanks(s);
	if (strncmp(s, "$0", 2))
		return ASM_UNKNOWN;
	s = skip_blanks(s + 2);
	if (*s != ',')
		return ASM_UNKNOWN;
	s = skip_blanks(s + 1);
	for (u32 i = 0; i < ARRAY_LEN(known); i++) {
		size_t n = strlen(known[i].name);
		if (strncmp(s, known[i].name, n) || isalnum((unsigned char)s[n]) || s[n] == '_')
			continue;
		s = skip_blanks(s + n);
		s = skip_blanks(s + (*s == ';'));
		return *s ? ASM_UNKNOWN : known[i].source;
	}
	return ASM_UNKNOWN;
}

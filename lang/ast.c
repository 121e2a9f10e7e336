/* The printer of the AST, for `tlc --emit ast` and for error messages. */
#include "lang/ast.h"

const char *operator_text(enum operator op)
{
	static const char *const text[] = {
		[OP_ADD] = "+", [OP_SUB] = "-", [OP_MUL] = "*", [OP_DIV] = "/", [OP_FLOORDIV] = "//", [OP_MOD] = "%",
		[OP_POW] = "**", [OP_MATMUL] = "@", [OP_SHL] = "<<", [OP_SHR] = ">>", [OP_BITAND] = "&",
		[OP_BITOR] = "|", [OP_BITXOR] = "^", [OP_NEG] = "-", [OP_POS] = "+", [OP_INVERT] = "~",
		[OP_NOT] = "not ", [OP_LT] = "<", [OP_LE] = "<=", [OP_GT] = ">", [OP_GE] = ">=", [OP_EQ] = "==",
		[OP_NE] = "!=", [OP_IS] = "is", [OP_IS_NOT] = "is not", [OP_IN] = "in", [OP_NOT_IN] = "not in",
	};
	return text[op];
}

static void print_list(struct expr *const *items, u32 n, const char *sep, struct strbuf *out)
{
	for (u32 i = 0; i < n; i++) {
		sb_puts(out, i ? sep : "");
		ast_print_expr(items[i], out);
	}
}

static void print_int(i128 v, struct strbuf *out)
{
	char digits[48];
	int n = sizeof digits;
	digits[--n] = 0;
	bool negative = v < 0;
	if (negative)
		v = -v;
	do
		digits[--n] = (char)('0' + (int)(v % 10));
	while (v /= 10);
	if (negative)
		digits[--n] = '-';
	sb_puts(out, digits + n);
}

static void print_call(const struct expr *e, struct strbuf *out)
{
	ast_print_expr(e->a, out);
	sb_puts(out, "(");
	print_list(e->items, e->nitems, ", ", out);
	for (u32 i = 0; i < e->nkeywords; i++) {
		sb_puts(out, i || e->nitems ? ", " : "");
		sb_printf(out, e->keywords[i].name ? "%s=" : "**", e->keywords[i].name);
		ast_print_expr(e->keywords[i].value, out);
	}
	sb_puts(out, ")");
}

static void print_operation(const struct expr *e, struct strbuf *out)
{
	sb_puts(out, "(");
	switch (e->kind) {
	case EX_UNARY:
		sb_puts(out, operator_text(e->op));
		ast_print_expr(e->a, out);
		break;
	case EX_BINARY:
		ast_print_expr(e->a, out);
		sb_printf(out, " %s ", operator_text(e->op));
		ast_print_expr(e->b, out);
		break;
	case EX_AND:
	case EX_OR:
		print_list(e->items, e->nitems, e->kind == EX_AND ? " and " : " or ", out);
		break;
	case EX_COMPARE:
		for (u32 i = 0; i < e->nitems; i++) {
			if (i)
				sb_printf(out, " %s ", operator_text(e->ops[i - 1]));
			ast_print_expr(e->items[i], out);
		}
		break;
	case EX_IFEXP:
		ast_print_expr(e->a, out);
		sb_puts(out, " if ");
		ast_print_expr(e->b, out);
		sb_puts(out, " else ");
		ast_print_expr(e->c, out);
		break;
	default: tl_unreachable("not an operation");
	}
	sb_puts(out, ")");
}

/* Prints an expression in source form, with parentheses around every operation. */
void ast_print_expr(const struct expr *e, struct strbuf *out)
{
	switch (e->kind) {
	case EX_NAME: sb_puts(out, e->name); break;
	case EX_INT: print_int(e->integer, out); break;
	case EX_FLOAT: sb_printf(out, "%.17g", e->real); break;
	case EX_STR: sb_printf(out, "\"%.*s\"", (int)e->text_len, e->text); break;
	case EX_FSTR:
		for (u32 i = 0; i < e->nitems; i++) {
			sb_puts(out, i ? " " : "");
			ast_print_expr(e->items[i], out);
		}
		if (!e->nitems)
			sb_printf(out, "f\"%.*s\"", (int)e->text_len, e->text);
		break;
	case EX_NONE: sb_puts(out, "None"); break;
	case EX_TRUE: sb_puts(out, "True"); break;
	case EX_FALSE: sb_puts(out, "False"); break;
	case EX_ELLIPSIS: sb_puts(out, "..."); break;
	case EX_TUPLE:
	case EX_LIST:
		sb_puts(out, e->kind == EX_TUPLE ? "(" : "[");
		print_list(e->items, e->nitems, ", ", out);
		sb_puts(out, e->kind == EX_TUPLE ? (e->nitems == 1 ? ",)" : ")") : "]");
		break;
	case EX_DICT:
		sb_puts(out, "{");
		for (u32 i = 0; i < e->nitems; i++) {
			sb_puts(out, !i ? "" : i % 2 ? ": " : ", ");
			ast_print_expr(e->items[i], out);
		}
		sb_puts(out, "}");
		break;
	case EX_ATTR:
		ast_print_expr(e->a, out);
		sb_printf(out, ".%s", e->name);
		break;
	case EX_SUBSCRIPT:
		ast_print_expr(e->a, out);
		sb_puts(out, "[");
		ast_print_expr(e->b, out);
		sb_puts(out, "]");
		break;
	case EX_SLICE:
		if (e->a)
			ast_print_expr(e->a, out);
		sb_puts(out, ":");
		if (e->b)
			ast_print_expr(e->b, out);
		if (e->c) {
			sb_puts(out, ":");
			ast_print_expr(e->c, out);
		}
		break;
	case EX_LAMBDA: sb_puts(out, "lambda …"); break;
	case EX_CALL: print_call(e, out); break;
	case EX_STAR:
		sb_puts(out, "*");
		ast_print_expr(e->a, out);
		break;
	case EX_NAMED:
		sb_printf(out, "(%s := ", e->a->name);
		ast_print_expr(e->b, out);
		sb_puts(out, ")");
		break;
	case EX_COMPREHENSION:
		sb_puts(out, e->b ? "{" : "[");
		ast_print_expr(e->a, out);
		if (e->b) {
			sb_puts(out, ": ");
			ast_print_expr(e->b, out);
		}
		print_list(e->items, e->nitems, "", out);
		sb_puts(out, e->b ? "}" : "]");
		break;
	case EX_FOR:
		sb_puts(out, " for ");
		ast_print_expr(e->a, out);
		sb_puts(out, " in ");
		ast_print_expr(e->b, out);
		break;
	case EX_IF:
		sb_puts(out, " if ");
		ast_print_expr(e->a, out);
		break;
	default: print_operation(e, out);
	}
}

static void print_block(const struct body *b, int indent, struct strbuf *out);

/* Prints `head value tail`; value may be NULL. */
static void print_line(struct strbuf *out, const char *head, const struct expr *value, const char *tail)
{
	sb_puts(out, head);
	if (value)
		ast_print_expr(value, out);
	sb_puts(out, tail);
}

static void print_if(const struct stmt *s, int indent, struct strbuf *out)
{
	for (u32 i = 0; i < s->narms; i++) {
		if (i)
			sb_printf(out, "%*s", indent, "");
		if (s->arms[i].test)
			print_line(out, i ? "elif " : "if ", s->arms[i].test, ":\n");
		else
			sb_puts(out, i ? "else:\n" : "if True:\n");
		print_block(&s->arms[i].body, indent + 4, out);
	}
}

static void print_loop(const struct stmt *s, int indent, struct strbuf *out)
{
	print_block(&s->body, indent + 4, out);
	if (!s->orelse.len)
		return;
	sb_printf(out, "%*selse:\n", indent, "");
	print_block(&s->orelse, indent + 4, out);
}

static void print_stmt(const struct stmt *s, int indent, struct strbuf *out)
{
	sb_printf(out, "%*s", indent, "");
	switch (s->kind) {
	case ST_EXPR: print_line(out, "", s->value, "\n"); break;
	case ST_ASSIGN:
		for (u32 i = 0; i < s->ntargets; i++)
			print_line(out, "", s->targets[i], " = ");
		print_line(out, "", s->value, "\n");
		break;
	case ST_AUG:
		print_line(out, "", s->target, " ");
		sb_puts(out, operator_text(s->op));
		print_line(out, "= ", s->value, "\n");
		break;
	case ST_ANN:
		print_line(out, "", s->target, ": ");
		print_line(out, "", s->annotation, s->value ? " = " : "");
		print_line(out, "", s->value, "\n");
		break;
	case ST_IF: print_if(s, indent, out); break;
	case ST_FOR:
		print_line(out, "for ", s->target, " in ");
		print_line(out, "", s->value, ":\n");
		print_loop(s, indent, out);
		break;
	case ST_WHILE:
		print_line(out, "while ", s->value, ":\n");
		print_loop(s, indent, out);
		break;
	case ST_WITH:
		print_line(out, "with ", s->value, s->target ? " as " : ":\n");
		print_line(out, "", s->target, s->target ? ":\n" : "");
		print_block(&s->body, indent + 4, out);
		break;
	case ST_RETURN: print_line(out, s->value ? "return " : "return", s->value, "\n"); break;
	case ST_RAISE: print_line(out, s->value ? "raise " : "raise", s->value, "\n"); break;
	case ST_ASSERT:
		print_line(out, "assert ", s->value, s->message ? ", " : "");
		print_line(out, "", s->message, "\n");
		break;
	case ST_PASS: sb_puts(out, "pass\n"); break;
	case ST_BREAK: sb_puts(out, "break\n"); break;
	case ST_CONTINUE: sb_puts(out, "continue\n"); break;
	case ST_UNSUPPORTED: sb_printf(out, "# unsupported: %s\n", s->name); break;
	}
}

static void print_block(const struct body *b, int indent, struct strbuf *out)
{
	for (u32 i = 0; i < b->len; i++)
		print_stmt(b->at[i], indent, out);
	if (!b->len)
		sb_printf(out, "%*spass\n", indent, "");
}

void ast_print(const struct module *m, FILE *file)
{
	struct arena scratch = {0};
	struct strbuf out = {.arena = &scratch};
	for (u32 i = 0; i < m->funcs.len; i++) {
		const struct func *f = m->funcs.at[i];
		sb_printf(&out, "%s\ndef %s(", f->kind == FUNC_JIT ? "@triton.jit" : "@triton.constexpr_function",
			  f->name);
		for (u32 j = 0; j < f->nparams; j++) {
			const struct param *q = &f->params[j];
			sb_printf(&out, "%s%s%s", j ? ", " : "", q->rest ? "**" : q->star ? "*" : "", q->name);
			if (q->annotation)
				print_line(&out, ": ", q->annotation, "");
			if (q->value)
				print_line(&out, q->annotation ? " = " : "=", q->value, "");
		}
		sb_puts(&out, "):\n");
		print_block(&f->body, 4, &out);
		sb_puts(&out, "\n");
	}
	fputs(out.at ? out.at : "", file);
	arena_free(&scratch);
}

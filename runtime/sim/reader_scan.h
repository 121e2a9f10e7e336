/* ptx_read: the scanner and the grammar put together. Included by ptx.y only. */
int ptx_lex_lex_init_extra(struct ptx_reader *r, void **scanner);
int ptx_lex_lex_destroy(void *scanner);
void *ptx_lex__scan_bytes(const char *text, int len, void *scanner);

struct ptx_module *ptx_read(struct arena *a, const char *text, size_t len, const char **error)
{
	struct ptx_reader r = {.arena = a, .line = 1, .module = arena_new(a, struct ptx_module)};
	*r.module = (struct ptx_module){.text = text};
	void *scanner;
	if (len > INT32_MAX || ptx_lex_lex_init_extra(&r, &scanner)) {
		*error = "the text is too long";
		return NULL;
	}
	ptx_lex__scan_bytes(text, (int)len, scanner);
	int status = ptx_yyparse(scanner, &r);
	ptx_lex_lex_destroy(scanner);
	if (status || r.error || !r.kernels.len) {
		*error = r.error ? r.error : "the text holds no kernel";
		return NULL;
	}
	r.module->kernels = r.kernels.at;
	r.module->nkernels = r.kernels.len;
	r.module->vars = r.vars.at;
	r.module->nvars = r.module_vars;
	return r.module;
}

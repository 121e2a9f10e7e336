/* Grammar of PTX modules as LLVM writes them: one or more entry functions, no device functions. */
%define api.pure full
%define api.prefix {ptx_yy}
%define api.value.type {union ptx_value}
%define parse.error detailed
%param {void *scanner}
%parse-param {struct ptx_reader *r}
%expect 0

%code requires {
#include "runtime/sim/reader_build.h"
union ptx_value {
	const char *name;
	u64 bits;
	enum ptx_type type;
	enum ptx_space space;
	struct operand operand;
	operand_vec *operands;
	bits_vec *list;
};
}

%code top {
#include "support/arena.h"
/* a deep parser stack is allocated in the arena */
#define YYMALLOC(size) arena_alloc(r->arena, size)
#define YYFREE(stack) ((void)(stack))
}

%code {
int ptx_yylex(union ptx_value *value, void *scanner);
static void ptx_yyerror(void *scanner, struct ptx_reader *r, const char *message);
}

%token VERSION ".version" TARGET ".target" ADDRESS_SIZE ".address_size" FILE_ ".file" LOC ".loc" SECTION ".section"
%token VISIBLE ".visible" EXTERN ".extern" ENTRY ".entry" FUNC ".func" NORETURN ".noreturn" REG ".reg"
%token ALIGN ".align" PTR ".ptr" NTID ".reqntid" CLUSTER ".reqnctapercluster" EXPLICIT ".explicitcluster"
%token MAX_RANK ".maxclusterrank" TUNING ".maxnreg" PRAGMA ".pragma"
%token <space> SPACE "state space"
%token <type> TYPE "type"
%token <name> WORD "name" STRING "string" DOTTED "directive" BAD "character"
%token <bits> INT "integer" F32 "float" F64 "double"

%type <operand> operand address base
%type <operands> operands operand_list
%type <bits> align number signed dim
%type <list> ints initializer_list initializer

%%

module: %empty | module top { if (r->error) YYABORT; };
top: ".version" F64
   | ".target" targets
   | ".address_size" INT
   | ".file" INT STRING times { ptx_add_file(r, $INT, $STRING); }
   | linkage variable ';'
   | linkage entry
   | linkage function
   ;
times: %empty | ',' INT ',' INT;
targets: WORD { ptx_set_target(r, $WORD); } | targets ',' WORD;
linkage: %empty | linkage VISIBLE | linkage EXTERN;

variable: SPACE align TYPE WORD dim initializer { ptx_add_var(r, $SPACE, $align, $TYPE, $WORD, $dim, $initializer); };
align: %empty { $$ = 0; } | ".align" INT { $$ = $INT; };
dim: %empty { $$ = 1; } | '[' ']' { $$ = 0; } | '[' INT ']' { $$ = $INT; };
initializer: %empty { $$ = NULL; }
	   | '=' number { $$ = arena_new(r->arena, bits_vec); vec_push(r->arena, $$, $number); }
	   | '=' '{' initializer_list '}' { $$ = $initializer_list; }
	   ;
initializer_list: number { $$ = arena_new(r->arena, bits_vec); vec_push(r->arena, $$, $number); }
		| initializer_list[list] ',' number { vec_push(r->arena, $list, $number); $$ = $list; }
		;
number: signed | F32 | F64;
signed: INT | '-' INT { $$ = 0 - $INT; };
ints: INT { $$ = arena_new(r->arena, bits_vec); vec_push(r->arena, $$, $INT); }
    | ints[list] ',' INT { vec_push(r->arena, $list, $INT); $$ = $list; }
    ;

function: FUNC noreturn results WORD '(' parameters ')' noreturn ';' { ptx_add_function(r, $WORD); };
noreturn: %empty | NORETURN;
results: %empty | '(' parameters ')';
entry: ENTRY WORD { ptx_begin_kernel(r, $WORD); } '(' parameters ')' { ptx_end_parameters(r); } limits '{' body '}' {
		ptx_end_kernel(r);
	};
parameters: %empty | parameter_list;
parameter_list: parameter | parameter_list ',' parameter;
parameter: SPACE align TYPE pointer WORD dim { ptx_add_param(r, $align, $TYPE, $WORD, $dim); };
pointer: %empty | ".ptr" pointee alignment; /* the state space of the pointee is a hint, which is ignored */
pointee: %empty | SPACE;
alignment: %empty | ".align" INT;
limits: %empty
      | limits NTID ints
      | limits CLUSTER ints {
	for (u32 i = 0; i < 3; i++)
		r->kernel.cluster[i] = i < $ints->len ? (u32)$ints->at[i] : 1;
      }
      | limits EXPLICIT { r->kernel.explicit_cluster = true; }
      | limits MAX_RANK INT { r->kernel.max_cluster = (u32)$INT; }
      | limits TUNING INT
      ;

body: %empty | body statement { if (r->error) YYABORT; };
statement: ".reg" TYPE[type] { r->reg_type = $type; } registers ';'
	 | variable ';'
	 | ".loc" INT[file] INT[line] INT { r->src_file = (u32)$file; r->src_line = (u32)$line; }
	 | ".pragma" STRING ';'
	 | WORD ':' { ptx_add_label(r, $WORD); }
	 | '{' { ptx_begin_scope(r); } body '}' { ptx_end_scope(r); }
	 | WORD operands ';' { ptx_add_instr(r, NULL, false, $WORD, $operands); }
	 | '@' WORD[guard] WORD[opcode] operands ';' { ptx_add_instr(r, $guard, false, $opcode, $operands); }
	 | '@' '!' WORD[guard] WORD[opcode] operands ';' { ptx_add_instr(r, $guard, true, $opcode, $operands); }
	 ;
registers: register | registers ',' register;
register: WORD { ptx_declare_registers(r, $WORD, false, 1); }
	| WORD '<' INT '>' { ptx_declare_registers(r, $WORD, true, $INT); }
	;

operands: %empty { $$ = arena_new(r->arena, operand_vec); } | operand_list;
operand_list: operand { $$ = arena_new(r->arena, operand_vec); vec_push(r->arena, $$, $operand); }
	    | operand_list[list] ',' operand { vec_push(r->arena, $list, $operand); $$ = $list; }
	    ;
operand: WORD { $$ = ptx_named(r, $WORD); }
       | '!' WORD { $$ = ptx_named(r, $WORD); $$.negated = true; }
       | WORD[a] '|' WORD[b] {
	operand_vec v = {0};
	vec_push(r->arena, &v, ptx_named(r, $a));
	vec_push(r->arena, &v, ptx_named(r, $b));
	$$ = ptx_vector(&v);
       }
       | WORD '+' signed { $$ = ptx_named(r, $WORD); $$.imm = $signed; }
       | signed { $$ = (struct operand){.kind = O_INT, .imm = $signed}; }
       | F32 { $$ = (struct operand){.kind = O_FLOAT, .imm = $F32}; }
       | F64 { $$ = (struct operand){.kind = O_FLOAT, .imm = $F64, .wide = true}; }
       | '-' F64 { $$ = (struct operand){.kind = O_FLOAT, .imm = $F64 ^ (u64)1 << 63, .wide = true}; }
       | '[' address ']' { $$ = $address; }
       | '{' operand_list '}' { $$ = ptx_vector($operand_list); }
       | '(' operands ')' { $$ = ptx_vector($operands); }
       ;
address: base
       | base ',' '{' operand_list '}' { $$ = $base; $$.items = $operand_list->at; $$.nitems = $operand_list->len; }
       ;
base: WORD { $$ = ptx_address(r, $WORD, 0); }
    | WORD '+' signed { $$ = ptx_address(r, $WORD, $signed); }
    | INT { $$ = (struct operand){.kind = O_ADDRESS, .imm = $INT}; }
    ;

%%

static void ptx_yyerror(void *scanner, struct ptx_reader *r, const char *message)
{
	(void)scanner;
	ptx_read_error(r, "%s", message);
}

/* entry points of the scanner, ptx.l */
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

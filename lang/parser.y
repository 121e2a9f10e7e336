/* The grammar of jit functions: the part of Python that kernels use.
 *
 * Python constructs that a kernel cannot use are parsed where this is easy, so that the error names the construct
 * instead of reporting a syntax error. After an error the grammar resumes at the next line. */
%define api.pure full
%define api.prefix {tl_yy}
%define api.value.type {union parser_value}
%define api.location.type {struct loc}
%define parse.error custom
%locations
%param {struct parser *p}
%expect 0

%code requires {
#include "lang/ast_builder.h"
union parser_value {
	const char *name;
	struct expr *expr;
	struct stmt *stmt;
	struct body body;
	struct param param;
	expr_vec *exprs;
	stmt_vec *stmts;
	arm_vec *arms;
	param_vec *params;
	struct call_args *args;
	enum operator op;
	const struct branch *branch;
	struct func *func;
};
#define YYLLOC_DEFAULT(cur, rhs, n) ((cur) = (n) ? loc_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n)) : YYRHSLOC(rhs, 0))
}

%code top {
#include "support/arena.h"
/* a deep parser stack is allocated from the arena, too */
#define YYMALLOC(size) arena_alloc(p->arena, size)
#define YYFREE(stack) ((void)(stack))
}

%code {
static int tl_yylex(union parser_value *value, struct loc *loc, struct parser *p)
{
	struct token t = next_token(p);
	*loc = t.loc;
	value->name = t.value.name;
	return t.kind;
}
static void tl_yyerror(struct loc *loc, struct parser *p, const char *message);
}

%token NEWLINE INDENT DEDENT START_EXPRESSION START_CLASS
%token <branch> JIT_DEF CONSTEXPR_DEF
%token UNTERMINATED_STRING BAD_TOKEN
%token <name> NAME
%token <expr> NUMBER STRING
%token FALSE_ "False" NONE "None" TRUE_ "True" AND "and" AS "as" ASSERT "assert" ASYNC "async" AWAIT "await"
%token BREAK "break" CLASS "class" CONTINUE "continue" DEF "def" DEL "del" ELIF "elif" ELSE "else" EXCEPT "except"
%token FINALLY "finally" FOR "for" FROM "from" GLOBAL "global" IF "if" IMPORT "import" IN "in" IS "is"
%token LAMBDA "lambda" NONLOCAL "nonlocal" NOT "not" OR "or" PASS "pass" RAISE "raise" RETURN "return" TRY "try"
%token WHILE "while" WITH "with" YIELD "yield"
%token POW "**" FLOORDIV "//" SHL "<<" SHR ">>" LE "<=" GE ">=" EQ "==" NE "!=" ARROW "->" WALRUS ":=" ELLIPSIS "..."
%token ADD_EQ "+=" SUB_EQ "-=" MUL_EQ "*=" DIV_EQ "/=" FLOORDIV_EQ "//=" MOD_EQ "%=" AND_EQ "&=" OR_EQ "|="
%token XOR_EQ "^=" SHL_EQ "<<=" SHR_EQ ">>=" POW_EQ "**=" MATMUL_EQ "@="

/* A block after an invalid line is part of that line. */
%precedence NO_BLOCK
%precedence INDENT

%type <expr> test or_test and_test not_test comparison chain bit_or bit_xor bit_and shift arith term factor power
%type <expr> primary atom named comprehension
%type <exprs> clauses
%type <expr> tests subscript subscripts slice_part strings argument_value return_value
%type <expr> loop_target imported
%type <exprs> loop_targets test_list dict_list subscript_list or_list and_list targets decorators
%type <func> plain_function
%type <args> arguments argument_list
%type <stmt> statement simple compound nested nested_class block small if_statement expression_statement
%type <stmt> with_item named_item
%type <stmts> statements small_list with_items named_items
%type <body> suite else_part
%type <arms> elifs
%type <params> parameters parameter_list lambda_parameters
%type <name> import_as
%type <param> parameter lambda_parameter
%type <op> compare_op augmented unary_op

%%

start: module
     | START_EXPRESSION tests { p->expression = $tests; }
     | START_CLASS NAME[name] {
	p->class->name = $name;
	p->class->loc = @name;
     } bases ':' class_suite
     ;

module: %empty
      | module function
      | module error
      ;

function: JIT_DEF NAME '(' parameters ')' return_annotation ':' suite {
		add_function(p, FUNC_JIT, $JIT_DEF, $NAME, @NAME, $parameters, $suite);
	}
	| CONSTEXPR_DEF NAME '(' parameters ')' return_annotation ':' suite {
		add_function(p, FUNC_CONSTEXPR, $CONSTEXPR_DEF, $NAME, @NAME, $parameters, $suite);
	}
	;

bases: %empty
     | '(' arguments ')' { p->class->bases = $arguments->items.at; p->class->nbases = $arguments->items.len; }
     ;
class_suite: simple { add_class_statement(p, $simple); }
	   | NEWLINE INDENT members DEDENT
	   ;
members: %empty | members member;
member: simple { add_class_statement(p, $simple); }
      | plain_function { add_method(p, $plain_function, &(expr_vec){0}); }
      | decorators plain_function { add_method(p, $plain_function, $decorators); }
      | block { add_class_statement(p, $block); }
      | nested_class { add_class_statement(p, $nested_class); }
      | error NEWLINE %prec NO_BLOCK { yyerrok; }
      | error NEWLINE INDENT statements DEDENT { yyerrok; }
      ;
decorators: '@' test NEWLINE { $$ = expr_list(p, $test); }
	  | decorators[list] '@' test NEWLINE { vec_push(p->arena, $list, $test); $$ = $list; }
	  ;
plain_function: DEF NAME '(' parameters ')' return_annotation ':' suite {
		$$ = new_function(p, $NAME, @NAME, $parameters, $suite);
	}
	;

return_annotation: %empty | ARROW test;

parameters: %empty { $$ = arena_new(p->arena, param_vec); }
	  | parameter_list
	  | parameter_list ','
	  ;
parameter_list: parameter { $$ = add_parameter(p, arena_new(p->arena, param_vec), $parameter); }
	      | parameter_list[list] ',' parameter { $$ = add_parameter(p, $list, $parameter); }
	      ;
parameter: NAME { $$ = (struct param){.name = $NAME, .loc = @NAME}; }
	 | NAME ':' test { $$ = (struct param){.name = $NAME, .annotation = $test, .loc = @NAME}; }
	 | NAME '=' test { $$ = (struct param){.name = $NAME, .value = $test, .loc = @NAME}; }
	 | NAME ':' test[type] '=' test[value] {
		$$ = (struct param){.name = $NAME, .annotation = $type, .value = $value, .loc = @NAME};
	 }
	 | '*' { $$ = (struct param){0}; /* keyword-only parameters follow: no effect here */ }
	 | '/' { $$ = (struct param){0}; }
	 | '*' NAME { $$ = (struct param){.name = $NAME, .star = true, .loc = @NAME}; }
	 | POW NAME { $$ = (struct param){.name = $NAME, .rest = true, .loc = @$}; }
	 | ELLIPSIS { diag(p->diags, E_ELIDED_PARAM, @$); $$ = (struct param){.name = "...", .loc = @$}; }
	 ;

suite: simple { $$ = single_body(p, $simple); }
     | NEWLINE INDENT statements DEDENT { $$ = (struct body){$statements->at, $statements->len}; }
     | NEWLINE %prec NO_BLOCK { diag(p->diags, E_EXPECTED_BLOCK, @$); $$ = (struct body){0}; }
     ;

statements: %empty { $$ = arena_new(p->arena, stmt_vec); }
	  | statements[list] statement { if ($statement) vec_push(p->arena, $list, $statement); $$ = $list; }
	  ;

statement: simple
	 | compound
	 | error NEWLINE %prec NO_BLOCK { $$ = NULL; yyerrok; }
	 | error NEWLINE INDENT statements DEDENT { $$ = NULL; yyerrok; }
	 | INDENT statements DEDENT { diag(p->diags, E_UNEXPECTED_INDENT, @INDENT); $$ = NULL; }
	 ;

simple: small_list NEWLINE { $$ = ast_line(p, $small_list); }
      | small_list ';' NEWLINE { $$ = ast_line(p, $small_list); }
      ;
small_list: small { $$ = arena_new(p->arena, stmt_vec); vec_push(p->arena, $$, $small); }
	  | small_list[list] ';' small { vec_push(p->arena, $list, $small); $$ = $list; }
	  ;

small: expression_statement
     | PASS { $$ = ast_stmt(p, ST_PASS, @$); }
     | BREAK { $$ = ast_stmt(p, ST_BREAK, @$); }
     | CONTINUE { $$ = ast_stmt(p, ST_CONTINUE, @$); }
     | RETURN return_value { $$ = ast_stmt(p, ST_RETURN, @$); $$->value = $return_value; }
     | RAISE return_value { $$ = ast_stmt(p, ST_RAISE, @$); $$->value = $return_value; }
     | RAISE test[what] FROM test { $$ = ast_stmt(p, ST_RAISE, @$); $$->value = $what; (void)$4; }
     | ASSERT test[what] { $$ = ast_stmt(p, ST_ASSERT, @$); $$->value = $what; }
     | ASSERT test[what] ',' test[message] {
	$$ = ast_stmt(p, ST_ASSERT, @$);
	$$->value = $what;
	$$->message = $message;
     }
     | DEL tests { $$ = ast_unsupported_stmt(p, "del", @$); }
     | GLOBAL tests { $$ = ast_unsupported_stmt(p, "global", @$); }
     | NONLOCAL tests { $$ = ast_unsupported_stmt(p, "nonlocal", @$); }
     | IMPORT tests import_as { $$ = ast_import(p, NULL, $tests, $import_as, @$); }
     | FROM tests IMPORT imported import_as { $$ = ast_import(p, $tests, $imported, $import_as, @$); }
     | YIELD return_value { $$ = ast_unsupported_stmt(p, "yield", @$); }
     ;
imported: tests | '*' { $$ = NULL; };
import_as: %empty { $$ = NULL; } | AS NAME { $$ = $NAME; };
return_value: %empty { $$ = NULL; } | tests;

expression_statement: tests { $$ = ast_stmt(p, ST_EXPR, @$); $$->value = $tests; }
		    | targets tests {
			$$ = ast_stmt(p, ST_ASSIGN, @$);
			$$->targets = $targets->at;
			$$->ntargets = $targets->len;
			$$->value = $tests;
		    }
		    | tests[target] augmented tests[value] {
			check_target(p, $target, true);
			$$ = ast_stmt(p, ST_AUG, @$);
			$$->target = $target;
			$$->op = $augmented;
			$$->value = $value;
		    }
		    | tests[target] ':' test[type] { $$ = ast_annotated(p, $target, $type, NULL, @$); }
		    | tests[target] ':' test[type] '=' tests[value] {
			$$ = ast_annotated(p, $target, $type, $value, @$);
		    }
		    ;
targets: tests '=' {
		check_target(p, $tests, false);
		$$ = arena_new(p->arena, expr_vec);
		vec_push(p->arena, $$, $tests);
	}
       | targets[list] tests '=' { check_target(p, $tests, false); vec_push(p->arena, $list, $tests); $$ = $list; }
       ;
augmented: ADD_EQ { $$ = OP_ADD; } | SUB_EQ { $$ = OP_SUB; } | MUL_EQ { $$ = OP_MUL; } | DIV_EQ { $$ = OP_DIV; }
	 | FLOORDIV_EQ { $$ = OP_FLOORDIV; } | MOD_EQ { $$ = OP_MOD; } | AND_EQ { $$ = OP_BITAND; }
	 | OR_EQ { $$ = OP_BITOR; } | XOR_EQ { $$ = OP_BITXOR; } | SHL_EQ { $$ = OP_SHL; } | SHR_EQ { $$ = OP_SHR; }
	 | POW_EQ { $$ = OP_POW; } | MATMUL_EQ { $$ = OP_MATMUL; }
	 ;

compound: block
	| nested
	| decorators nested { (void)$decorators; $$ = $nested; }
	;
nested: DEF NAME '(' parameters ')' return_annotation ':' suite { $$ = ast_unsupported_stmt(p, "a nested def", @DEF); }
      | nested_class
      ;
nested_class: CLASS test ':' suite { $$ = ast_unsupported_stmt(p, "class", @CLASS); };
block: if_statement
	| FOR loop_target[target] IN tests[over] ':' suite else_part {
		check_target(p, $target, false);
		$$ = ast_stmt(p, ST_FOR, @FOR);
		$$->target = $target;
		$$->value = $over;
		$$->body = $suite;
		$$->orelse = $else_part;
	}
	| WHILE named ':' suite else_part {
		$$ = ast_stmt(p, ST_WHILE, @WHILE);
		$$->value = $named;
		$$->body = $suite;
		$$->orelse = $else_part;
	}
	| WITH with_items ':' suite { $$ = nest_with(p, $with_items, $suite); }
	| WITH '(' named_items ')' ':' suite { $$ = nest_with(p, $named_items, $suite); }
	| WITH '(' named_items ',' ')' ':' suite { $$ = nest_with(p, $named_items, $suite); }
	| TRY ':' suite { $$ = ast_unsupported_stmt(p, "try", @TRY); $$->body = $suite; }
	| EXCEPT test import_as ':' suite else_part {
		(void)$else_part;
		$$ = ast_unsupported_stmt(p, "except", @EXCEPT);
		$$->body = $suite;
	}
	| EXCEPT ':' suite else_part {
		(void)$else_part;
		$$ = ast_unsupported_stmt(p, "except", @EXCEPT);
		$$->body = $suite;
	}
	| FINALLY ':' suite { $$ = ast_unsupported_stmt(p, "finally", @FINALLY); $$->body = $suite; }
	;
with_items: with_item { $$ = arena_new(p->arena, stmt_vec); vec_push(p->arena, $$, $with_item); }
	  | with_items[list] ',' with_item { vec_push(p->arena, $list, $with_item); $$ = $list; }
	  ;
named_items: named_item { $$ = arena_new(p->arena, stmt_vec); vec_push(p->arena, $$, $named_item); }
	   | named_items[list] ',' with_item { vec_push(p->arena, $list, $with_item); $$ = $list; }
	   ;
with_item: test { $$ = ast_stmt(p, ST_WITH, @$); $$->value = $test; }
	 | named_item
	 ;
named_item: test AS primary { $$ = ast_stmt(p, ST_WITH, @$); $$->value = $test; $$->target = $primary; }
	 ;
loop_target: primary
	   | primary ',' { $$ = ast_sequence(p, EX_TUPLE, NULL, $primary, @$); }
	   | primary ',' loop_targets { $$ = ast_sequence(p, EX_TUPLE, $loop_targets, $primary, @$); }
	   ;
loop_targets: primary { $$ = expr_list(p, $primary); }
	    | loop_targets[list] ',' primary { vec_push(p->arena, $list, $primary); $$ = $list; }
	    ;
else_part: %empty { $$ = (struct body){0}; } | ELSE ':' suite { $$ = $suite; };

if_statement: IF named ':' suite elifs else_part {
		$$ = ast_stmt(p, ST_IF, @IF);
		finish_if(p, $$, (struct arm){$named, $suite}, $elifs, $else_part);
	};
elifs: %empty { $$ = arena_new(p->arena, arm_vec); }
     | elifs[list] ELIF named ':' suite { vec_push(p->arena, $list, ((struct arm){$named, $suite})); $$ = $list; }
     ;

tests: test
     | test ',' { $$ = ast_sequence(p, EX_TUPLE, NULL, $test, @$); }
     | test ',' test_list { $$ = ast_sequence(p, EX_TUPLE, $test_list, $test, @$); }
     | test ',' test_list ',' { $$ = ast_sequence(p, EX_TUPLE, $test_list, $test, @$); }
     ;
test_list: test { $$ = expr_list(p, $test); }
	 | test_list[list] ',' test { vec_push(p->arena, $list, $test); $$ = $list; }
	 ;

test: or_test
    | or_test[yes] IF or_test[condition] ELSE test[no] { $$ = ast_node(p, EX_IFEXP, $yes, $condition, $no, @$); }
    | LAMBDA lambda_parameters ':' test[body] { $$ = ast_lambda(p, $lambda_parameters, $body, @LAMBDA); }
    ;
lambda_parameters: %empty { $$ = arena_new(p->arena, param_vec); }
		 | lambda_parameter { $$ = add_parameter(p, arena_new(p->arena, param_vec), $lambda_parameter); }
		 | lambda_parameters[list] ',' lambda_parameter { $$ = add_parameter(p, $list, $lambda_parameter); }
		 ;
lambda_parameter: NAME { $$ = (struct param){.name = $NAME, .loc = @NAME}; }
		| NAME '=' test { $$ = (struct param){.name = $NAME, .value = $test, .loc = @NAME}; }
		| '*' NAME { $$ = (struct param){.name = $NAME, .star = true, .loc = @NAME}; }
		| POW NAME { $$ = (struct param){.name = $NAME, .rest = true, .loc = @NAME}; }
		| '*' { $$ = (struct param){0}; }
		| '/' { $$ = (struct param){0}; }
		;

or_test: and_test
       | or_list { $$ = ast_sequence(p, EX_OR, $or_list, NULL, @$); }
       ;
or_list: and_test[a] OR and_test[b] { $$ = expr_list(p, $a); vec_push(p->arena, $$, $b); }
       | or_list[list] OR and_test[b] { vec_push(p->arena, $list, $b); $$ = $list; }
       ;
and_test: not_test
	| and_list { $$ = ast_sequence(p, EX_AND, $and_list, NULL, @$); }
	;
and_list: not_test[a] AND not_test[b] { $$ = expr_list(p, $a); vec_push(p->arena, $$, $b); }
	| and_list[list] AND not_test[b] { vec_push(p->arena, $list, $b); $$ = $list; }
	;
not_test: comparison
	| NOT not_test[a] { $$ = ast_unary(p, OP_NOT, $a, @$); }
	;
comparison: bit_or
	  | chain { warn_of_bits_in_chain(p, $chain); $$ = $chain; }
	  ;
chain: bit_or[a] compare_op bit_or[b] { $$ = ast_compare(p, $compare_op, $a, $b, @$); }
     | chain[a] compare_op bit_or[b] { $$ = ast_extend_compare(p, $a, $compare_op, $b, @$); }
     ;
compare_op: '<' { $$ = OP_LT; } | '>' { $$ = OP_GT; } | LE { $$ = OP_LE; } | GE { $$ = OP_GE; } | EQ { $$ = OP_EQ; }
	  | NE { $$ = OP_NE; } | IS { $$ = OP_IS; } | IS NOT { $$ = OP_IS_NOT; } | IN { $$ = OP_IN; }
	  | NOT IN { $$ = OP_NOT_IN; }
	  ;
bit_or: bit_xor | bit_or[a] '|' bit_xor[b] { $$ = ast_binary(p, OP_BITOR, $a, $b, @$); };
bit_xor: bit_and | bit_xor[a] '^' bit_and[b] { $$ = ast_binary(p, OP_BITXOR, $a, $b, @$); };
bit_and: shift | bit_and[a] '&' shift[b] { $$ = ast_binary(p, OP_BITAND, $a, $b, @$); };
shift: arith
     | shift[a] SHL arith[b] { $$ = ast_binary(p, OP_SHL, $a, $b, @$); }
     | shift[a] SHR arith[b] { $$ = ast_binary(p, OP_SHR, $a, $b, @$); }
     ;
arith: term
     | arith[a] '+' term[b] { $$ = ast_binary(p, OP_ADD, $a, $b, @$); }
     | arith[a] '-' term[b] { $$ = ast_binary(p, OP_SUB, $a, $b, @$); }
     ;
term: factor
    | term[a] '*' factor[b] { $$ = ast_binary(p, OP_MUL, $a, $b, @$); }
    | term[a] '/' factor[b] { $$ = ast_binary(p, OP_DIV, $a, $b, @$); }
    | term[a] FLOORDIV factor[b] { $$ = ast_binary(p, OP_FLOORDIV, $a, $b, @$); }
    | term[a] '%' factor[b] { $$ = ast_binary(p, OP_MOD, $a, $b, @$); }
    | term[a] '@' factor[b] { $$ = ast_binary(p, OP_MATMUL, $a, $b, @$); }
    ;
factor: power | unary_op factor[a] { $$ = ast_unary(p, $unary_op, $a, @$); };
unary_op: '-' { $$ = OP_NEG; } | '+' { $$ = OP_POS; } | '~' { $$ = OP_INVERT; };
power: primary | primary[a] POW factor[b] { $$ = ast_binary(p, OP_POW, $a, $b, @$); };

primary: atom
       | primary[a] '.' NAME { $$ = ast_attribute(p, $a, $NAME, @$); }
       | primary[a] '[' subscripts ']' { $$ = ast_node(p, EX_SUBSCRIPT, $a, $subscripts, NULL, @$); }
       | primary[a] '(' arguments ')' { $$ = ast_call(p, $a, $arguments, @$); }
       ;

subscripts: subscript
	  | subscript ',' { $$ = ast_sequence(p, EX_TUPLE, NULL, $subscript, @$); }
	  | subscript ',' subscript_list { $$ = ast_sequence(p, EX_TUPLE, $subscript_list, $subscript, @$); }
	  | subscript ',' subscript_list ',' { $$ = ast_sequence(p, EX_TUPLE, $subscript_list, $subscript, @$); }
	  ;
subscript_list: subscript { $$ = expr_list(p, $subscript); }
	      | subscript_list[list] ',' subscript { vec_push(p->arena, $list, $subscript); $$ = $list; }
	      ;
subscript: test
	 | slice_part[a] ':' slice_part[b] { $$ = ast_node(p, EX_SLICE, $a, $b, NULL, @$); }
	 | slice_part[a] ':' slice_part[b] ':' slice_part[c] { $$ = ast_node(p, EX_SLICE, $a, $b, $c, @$); }
	 ;
slice_part: %empty { $$ = NULL; } | test;

arguments: %empty { $$ = arena_new(p->arena, struct call_args); }
	 | argument_list
	 | argument_list ','
	 ;
argument_list: argument_value { $$ = arena_new(p->arena, struct call_args); add_argument(p, $$, NULL, $1, @1); }
	     | NAME '=' test { $$ = arena_new(p->arena, struct call_args); add_argument(p, $$, $NAME, $test, @NAME); }
	     | POW test { $$ = arena_new(p->arena, struct call_args); add_keywords(p, $$, $test, @$); }
	     | argument_list[list] ',' POW test { add_keywords(p, $list, $test, loc_join(@POW, @test)); $$ = $list; }
	     | argument_list[list] ',' argument_value { add_argument(p, $list, NULL, $3, @3); $$ = $list; }
	     | argument_list[list] ',' NAME '=' test { add_argument(p, $list, $NAME, $test, @NAME); $$ = $list; }
	     ;
argument_value: named
	      | '*' test { $$ = ast_node(p, EX_STAR, $test, NULL, NULL, @$); }
	      | comprehension
	      ;
named: test
     | NAME WALRUS test { $$ = ast_named(p, $NAME, @NAME, $test, @$); }
     ;
comprehension: named clauses { $$ = ast_comprehension(p, $named, NULL, $clauses, @$); };
clauses: FOR loop_target IN or_test { $$ = expr_list(p, ast_clause(p, EX_FOR, $loop_target, $or_test, @$)); }
       | clauses[list] FOR loop_target IN or_test {
		vec_push(p->arena, $list, ast_clause(p, EX_FOR, $loop_target, $or_test, @FOR));
		$$ = $list;
       }
       | clauses[list] IF or_test {
		vec_push(p->arena, $list, ast_clause(p, EX_IF, $or_test, NULL, @IF));
		$$ = $list;
       }
       ;

atom: NAME { $$ = ast_name(p, $NAME, @$); }
    | NUMBER
    | strings
    | NONE { $$ = ast_leaf(p, EX_NONE, @$); }
    | TRUE_ { $$ = ast_leaf(p, EX_TRUE, @$); }
    | FALSE_ { $$ = ast_leaf(p, EX_FALSE, @$); }
    | ELLIPSIS { $$ = ast_leaf(p, EX_ELLIPSIS, @$); }
    | '(' ')' { $$ = ast_sequence(p, EX_TUPLE, NULL, NULL, @$); }
    | '(' tests ')' { $$ = $tests; $$->loc = @$; $$->in_parentheses = true; }
    | '(' NAME WALRUS test ')' { $$ = ast_named(p, $NAME, @NAME, $test, @$); }
    | '(' comprehension ')' { $$ = $comprehension; }
    | '[' ']' { $$ = ast_sequence(p, EX_LIST, NULL, NULL, @$); }
    | '[' test_list ']' { $$ = ast_sequence(p, EX_LIST, $test_list, NULL, @$); }
    | '[' test_list ',' ']' { $$ = ast_sequence(p, EX_LIST, $test_list, NULL, @$); }
    | '[' comprehension ']' { $$ = $comprehension; $$->loc = @$; }
    | '{' '}' { $$ = ast_sequence(p, EX_DICT, NULL, NULL, @$); }
    | '{' test_list '}' { $$ = ast_sequence(p, EX_TUPLE, $test_list, NULL, @$); /* a set becomes a tuple */ }
    | '{' test_list ',' '}' { $$ = ast_sequence(p, EX_TUPLE, $test_list, NULL, @$); }
    | '{' dict_list '}' { $$ = ast_sequence(p, EX_DICT, $dict_list, NULL, @$); }
    | '{' dict_list ',' '}' { $$ = ast_sequence(p, EX_DICT, $dict_list, NULL, @$); }
    | '{' comprehension '}' { $$ = $comprehension; $$->loc = @$; /* a set becomes a tuple */ }
    | '{' test[key] ':' test[value] clauses '}' { $$ = ast_comprehension(p, $key, $value, $clauses, @$); }
    ;
dict_list: test[key] ':' test[value] { $$ = expr_list(p, $key); vec_push(p->arena, $$, $value); }
	 | dict_list[list] ',' test[key] ':' test[value] {
		vec_push(p->arena, $list, $key);
		vec_push(p->arena, $list, $value);
		$$ = $list;
	 }
	 ;
strings: STRING | strings[a] STRING[b] { $$ = ast_join_strings(p, $a, $b); };

%%

static int yyreport_syntax_error(const yypcontext_t *c, struct parser *p)
{
	yysymbol_kind_t got = yypcontext_token(c);
	yysymbol_kind_t want[3];
	int n = yypcontext_expected_tokens(c, want, 3);
	syntax_error(p, *yypcontext_location(c), got == YYSYMBOL_YYEMPTY ? NULL : yysymbol_name(got),
		     n == 1 ? yysymbol_name(want[0]) : NULL);
	return 0;
}

static void tl_yyerror(struct loc *loc, struct parser *p, const char *message)
{
	(void)message; /* bison reports only "memory exhausted" here: the nesting is too deep */
	diag(p->diags, E_NESTED_TOO_DEEP, *loc);
}

static void run_parser(struct parser *p)
{
	bool part = p->expression_only || p->class_only;
	scan_open(p, p->at, part ? p->limit : (u32)p->src->len);
	tl_yyparse(p);
	scan_close(p);
}

struct module *parse_module(struct arena *arena, struct interner *names, struct diags *diags, u16 file)
{
	struct parser p = {.arena = arena, .names = names, .diags = diags, .file = file, .line_start = true,
			   .host_scope = -1, .class_indent = -1};
	p.src = diags->sources.at[file];
	p.module = arena_new(arena, struct module);
	struct map empty = {.arena = arena};
	*p.module = (struct module){file, .by_name = empty, .definitions = empty};
	u32 errors = diags->nerrors, usable = 0;
	run_parser(&p);
	for (u32 i = 0; i < p.module->funcs.len; i++)
		usable += !p.module->funcs.at[i]->broken;
	if (!usable || diags->nerrors != errors)
		report_all_broken(arena, names, diags, p.module);
	return p.module;
}

struct expr *parse_expression(struct arena *arena, struct interner *names, struct diags *diags, u16 file, u32 start,
			      u32 end)
{
	u32 errors = diags->nerrors;
	struct parser p = {.arena = arena, .names = names, .diags = diags, .file = file, .expression_only = true};
	p.src = diags->sources.at[file];
	p.at = start;
	p.limit = end;
	run_parser(&p);
	return diags->nerrors == errors ? p.expression : NULL;
}

struct class_def *parse_class(struct arena *arena, struct interner *names, struct diags *diags, struct module *m,
			      u32 start, u32 end)
{
	u32 errors = diags->nerrors;
	struct parser p = {.arena = arena, .names = names, .diags = diags, .file = m->file, .class_only = true,
			   .in_kernel = true, .nindents = 1};
	p.src = diags->sources.at[m->file];
	p.at = start;
	p.limit = end;
	p.module = m;
	p.class = arena_new(arena, struct class_def);
	p.class->module = m;
	u32 line = line_of_offset(p.src, start), col = 1 + p.src->indent;
	for (const char *s = p.src->text + p.src->line_start[line]; *s == ' ' || *s == '\t'; s++)
		col++;
	struct token first = {.loc = {p.src->first_line + line, (u16)col, 1, m->file}};
	p.base_indent = p.indents[0] = indentation(&p, &first, &p.alt_indents[0]);
	run_parser(&p);
	return diags->nerrors == errors ? p.class : NULL;
}

struct func *parse_host_function(struct arena *arena, struct interner *names, struct diags *diags, struct module *m,
				 u32 start)
{
	u32 errors = diags->nerrors;
	struct parser p = {.arena = arena, .names = names, .diags = diags, .file = m->file, .function_only = true,
			   .in_kernel = true, .kind = FUNC_CONSTEXPR, .host_scope = -1};
	p.src = diags->sources.at[m->file];
	p.module = m;
	p.at = start;
	run_parser(&p);
	return diags->nerrors == errors ? p.function : NULL;
}

void report_broken(struct arena *arena, struct interner *names, struct diags *diags, const struct func *f)
{
	u32 errors = diags->nerrors;
	parse_host_function(arena, names, diags, f->module, f->start);
	for (u32 i = 0; i < f->nparams && f->kind == FUNC_JIT; i++)
		if (f->params[i].rest)
			diag(diags, E_STAR_PARAM, f->params[i].loc, "**", f->params[i].name);
	if (diags->nerrors == errors)
		diag(diags, E_SYNTAX, f->loc, "text in this function");
}

bool report_all_broken(struct arena *arena, struct interner *names, struct diags *diags, const struct module *m)
{
	bool found = false;
	for (u32 i = 0; i < m->funcs.len; i++) {
		if (m->funcs.at[i]->broken)
			report_broken(arena, names, diags, m->funcs.at[i]);
		found |= m->funcs.at[i]->broken;
	}
	return found;
}

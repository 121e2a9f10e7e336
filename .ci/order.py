"""order.py FILE…: calls, and lists of initialisers, of which two operands emit code. C leaves the order of operands open, so
the code would depend on the compiler of tlc. A function emits code if it inserts into LLVM IR or tile IR, or calls one
that does; functions are known by their names."""
import re
import sys

ROOTS = re.compile(r"LLVM(Build|AppendBasicBlock|InsertBasicBlock|PositionBuilder|AddGlobal|AddFunction)\w*$|block_insert$|build$")
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|^[ \t]*#(?:[^\n\\]|\\.)*|\n|\w+|\S', re.S | re.M)
KEYWORDS = set("if for while switch return sizeof do else case _Alignas _Alignof".split())


def tokens(path):
    """(token, line), without comments, strings and directives."""
    line, out = 1, []
    with open(path) as f:
        for t in TOKEN.findall(f.read()):
            if re.match(r"\w|[^\s\w/#\"']", t):
                out.append((t, line))
            elif t[0] in "\"'":
                out.append(('""', line))
            elif t == "/":
                out.append((t, line))
            line += t.count("\n")
    return out


def functions(toks):
    """(name, whether it is static, tokens of the body) of each definition."""
    depth, start, name = 0, None, None
    for i, (t, _) in enumerate(toks):
        if t == "{":
            if depth == 0 and i and toks[i - 1][0] == ")":
                level = 0
                for k in range(i - 1, -1, -1):
                    level += (toks[k][0] == ")") - (toks[k][0] == "(")
                    if not level:
                        break
                start, name, head = i, toks[k - 1][0], k - 1
                while head and toks[head - 1][0] not in (";", "}"):
                    head -= 1
                static = "static" in [t for t, _ in toks[head:k]]
            depth += 1
        elif t == "}":
            depth -= 1
            if depth == 0 and start is not None:
                yield name, static, toks[start:i + 1]
                start = None


def is_call(body, i):
    t = body[i][0]
    return re.match(r"[A-Za-z_]", t) and t not in KEYWORDS and i + 1 < len(body) and body[i + 1][0] == "("


def is_list(body, i):
    """Does the brace at i open initialisers, not a block?"""
    return i > 0 and body[i - 1][0] in ("=", ",", "(", "{") or (i > 0 and body[i - 1][0] == ")" and body[i + 1][0] not in ("}",) and in_literal(body, i))


def in_literal(body, i):
    """`(type){`, or `(type[]){`: the parenthesis follows no keyword or call."""
    level = 0
    for k in range(i - 1, -1, -1):
        level += (body[k][0] == ")") - (body[k][0] == "(")
        if not level:
            return body[k - 1][0] in ("=", "(", ",", "return", "?", ":", "&", "{")
    return False


def places(body, emits):
    """Lines of calls and lists with two operands that emit."""
    stack = []  # [opening token, line, number of the operand, operands that emit]
    for i, (t, line) in enumerate(body):
        if t in "([{":
            operands = t == "(" and i and is_call(body, i - 1) or t == "{" and is_list(body, i)
            stack.append([operands, line, 0, set()])
        elif t in ")]}" and stack:
            operands, begin, _, marked = stack.pop()
            if operands and len(marked) > 1:
                yield begin
        elif t == "," and stack:
            stack[-1][2] += 1
        elif t == ";" and stack:
            stack[-1][2] = 0
            stack[-1][3].clear()
        elif is_call(body, i) and emits(t):
            for frame in stack:
                frame[3].add(frame[2])


def main():
    bodies, calls = [], {}  # (file of a static function, or None; name): the names it calls
    for path in sys.argv[1:]:
        for name, static, body in functions(tokens(path)):
            key = path if static and path.endswith(".c") else None, name
            bodies.append((path, body))
            calls.setdefault(key, (path, set()))[1].update(body[i][0] for i in range(len(body)) if is_call(body, i))

    def does_emit(path, name):
        key = (path, name) if (path, name) in calls else (None, name)
        return key in emits or bool(ROOTS.match(name))

    emits, size = set(), -1
    while len(emits) > size:
        size = len(emits)
        emits |= {key for key, (path, names) in calls.items() if any(does_emit(path, name) for name in names)}
    found = sorted({(path, line) for path, body in bodies for line in places(body, lambda name: does_emit(path, name))})
    for path, line in found:
        print(f"{path}:{line}: two operands emit code, in an order that C leaves open")
    sys.exit(bool(found))


main()

"""Executes one thread of a kernel's SASS, as nvdisasm prints it, to see which instructions run. Values are computed in
Python's floats, so that last places may differ; instructions and modifiers that do not occur in code of mathematical
functions are missing. Loads give arguments[k] from the pointer in parameter k, and 0 from tables."""
import math
import re
import struct

WORD, PARAMETERS, TABLES = 0xFFFFFFFF, 0x210, 0x70000000


def bits_f32(x):
    return 0x7F800000 | (x < 0) << 31 if abs(x) >= 2.0**128 else struct.unpack("<I", struct.pack("<f", x))[0]


def f32(bits):
    return struct.unpack("<f", struct.pack("<I", bits & WORD))[0]


def bits_f64(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def f64(bits):
    return struct.unpack("<d", struct.pack("<Q", bits & (1 << 64) - 1))[0]


def signed(bits, width=32):
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> (width - 1) else bits


def read_sass(text):
    """Instructions (guard, name and modifiers, operands), and the index of each label."""
    code, labels = [], {}
    for line in text.splitlines():
        label = re.match(r"(\.L_x_\d+|\$\S+):", line) or re.match(r"\s+\.type\s+(\$\S+),@function", line)
        if label:
            labels.setdefault(label[1], len(code))
        op = re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][A-Z0-9_.]*)\s*(.*?)\s*;", line)
        if op and op[2] != "NOP":
            operands = [x.replace(".reuse", "").strip() for x in re.split(r",\s*(?![^\[]*\])", op[3]) if x]
            code.append((op[1], op[2].split("."), operands))
    return code, labels


def following(register):
    """The register of the upper half."""
    return re.sub(r"\d+", lambda n: str(int(n[0]) + 1), register)


def reciprocal(x):
    return math.copysign(math.inf, x) if x == 0 else 1 / x


def inverse_root(x):
    return math.inf if x == 0 else math.nan if not x >= 0 else 1 / math.sqrt(x)


SPECIAL = {"RCP": reciprocal, "RCP64H": reciprocal, "RSQ": inverse_root, "RSQ64H": inverse_root,
           "SQRT": lambda x: math.sqrt(x) if x >= 0 else math.nan, "SIN": math.sin, "COS": math.cos,
           "EX2": lambda x: 2.0**x if x < 128 else math.inf, "TANH": math.tanh,
           "LG2": lambda x: -math.inf if x == 0 else math.log2(x) if x > 0 else math.nan}


class Thread:
    def __init__(self, code, labels, arguments):
        self.code, self.labels, self.arguments = code, labels, arguments
        self.registers, self.predicates = {}, {}

    def run(self, most=20000):
        """The indices of the instructions executed."""
        at, calls, executed = 0, [], []
        while len(executed) < most:
            guard, (name, *modifiers), operands = self.code[at]
            executed.append(at)
            at += 1
            if guard and not self.predicate(guard):
                continue
            target = re.search(r"`\((.*)\)", operands[-1]) if operands else None
            if name == "EXIT":
                return executed
            if name == "RET":
                at = calls.pop()
            elif name == "CALL":
                calls.append(at)
                at = self.labels[target[1]]
            elif name == "BRA":
                if all(map(self.predicate, operands[:-1])):
                    at = self.labels[target[1]]
            elif name not in ("BSSY", "BSYNC", "WARPSYNC", "BMOV"):
                getattr(self, "do_" + name.lstrip("U") if hasattr(self, "do_" + name.lstrip("U")) else "do_" + name)(
                    modifiers, operands)
        raise RuntimeError("no end")

    # --- operands ---

    def predicate(self, name):
        value = name.strip("!") in ("PT", "UPT") or self.predicates.get(name.strip("!"), False)
        return value != name.startswith("!")

    def set_predicates(self, modifiers, operands, value, with_):
        combine = {"AND": lambda a: a and with_, "OR": lambda a: a or with_, "XOR": lambda a: a != with_}[
            next(x for x in modifiers if x in ("AND", "OR", "XOR"))]
        for name, v in zip(operands, (value, not value)):
            self.predicates[name] = bool(combine(v))

    def write(self, register, value, double=False):
        register = register.split(".")[0]
        if "RZ" not in register:
            self.registers[register] = value & WORD
            if double:
                self.registers[following(register)] = value >> 32 & WORD

    def constant(self, bank, offset):
        if bank:
            return TABLES if not offset & 4 else 0
        return (offset - PARAMETERS) // 8 + 1 << 24 if offset >= PARAMETERS and not offset & 4 else 0

    def word(self, operand, double=False):
        """An operand as an integer of 32 bits, or 64."""
        sign = -1 if re.match(r"-[RU|c]", operand) else 1
        inverted, body = operand[0] == "~", operand.lstrip("-~") if re.match(r"-[RU|c]|~", operand) else operand
        memory = re.match(r"c\[0x(\w+)\]\[0x(\w+)\]", body)
        if body[0] == "|":
            value = abs(signed(self.word(body.strip("|"))))
        elif memory:
            value = self.constant(int(memory[1], 16), int(memory[2], 16))
            if double:
                value |= self.constant(int(memory[1], 16), int(memory[2], 16) + 4) << 32
        elif body.startswith("c["):
            value = 0
        elif re.match(r"U?R", body):
            register = body.split(".")[0]
            value = self.registers.get(register, 0)
            if double and "RZ" not in register:
                value |= self.registers.get(following(register), 0) << 32
        elif re.match(r"-?(0x\w+|\d+)$", body):
            value = int(body, 0)
        else:
            value = bits_f64(self.number(body, True)) if double else bits_f32(self.number(body))
        return (sign * (~value if inverted else value)) & ((1 << 64) - 1 if double else WORD)

    def number(self, operand, double=False):
        if re.match(r"-?\|?(U?R|c\[)", operand):
            body = operand.lstrip("-").strip("|").replace(".64", "")
            value = f64(self.word(body, True)) if double else f32(self.word(body))
            value = abs(value) if "|" in operand else value
            return -value if operand[0] == "-" else value
        return math.nan if "NAN" in operand else float(operand.replace("INF", "inf"))

    def integers(self, modifiers, operands):
        return [self.word(x) if "U32" in modifiers else signed(self.word(x)) for x in operands]

    # --- moves and memory ---

    def do_MOV(self, m, o):
        self.write(o[0], self.word(o[1]))

    do_R2UR = do_MOV

    def do_CS2R(self, m, o):
        self.write(o[0], 0, True)

    def do_S2R(self, m, o):
        self.write(o[0], 0)

    def do_LDC(self, m, o):
        self.write(o[0], self.word(o[1], "64" in m), "64" in m)

    def do_LDG(self, m, o):
        address = self.registers.get(re.findall(r"R\d+", o[1])[-1], 0)
        k = (address >> 24) - 1
        self.write(o[0], self.arguments[k] if address < TABLES and 0 <= k < len(self.arguments) else 0, "64" in m)

    do_LD = do_LDG

    def do_LDL(self, m, o):
        self.write(o[0], 0, "64" in m)

    def do_STG(self, m, o):
        self.stored = self.word(o[1], "64" in m)

    do_ST = do_STG

    def do_STL(self, m, o):
        pass

    def do_HFMA2(self, m, o):  # the immediate operand is two halves
        self.write(o[0], int.from_bytes(struct.pack("<ee", float(o[4]), float(o[3])), "little"))

    def do_SEL(self, m, o):
        self.write(o[0], self.word(o[1 if self.predicate(o[3]) else 2]))

    def do_FSEL(self, m, o):
        x = o[1 if self.predicate(o[3]) else 2]
        bits = self.word(x.lstrip("-").strip("|")) if re.search("R|c", x) and "INF" not in x else self.word(x)
        bits &= 0x7FFFFFFF if "|" in x else WORD
        self.write(o[0], bits ^ (0x80000000 if re.match(r"-[|RUc]", x) else 0))

    def do_PRMT(self, m, o):
        data = self.word(o[3]) << 32 | self.word(o[1])
        self.write(o[0], sum((data >> 8 * (self.word(o[2]) >> 4 * i & 7) & 255) << 8 * i for i in range(4)))

    # --- floats ---

    def arithmetic(self, m, o, double, value):
        if double:
            return self.write(o[0], bits_f64(value), True)
        if "SAT" in m:
            value = min(max(value, 0.0), 1.0)
        bits = bits_f32(value)
        off = f32(bits) - value if math.isfinite(value) and math.isfinite(f32(bits)) else 0
        if "RM" in m and off > 0 or "RP" in m and off < 0 or "RZ" in m and off * value > 0:
            bits += 1 if (off > 0) == (value < 0) else -1
        self.write(o[0], bits)

    def do_FADD(self, m, o, double=False):
        self.arithmetic(m, o, double, self.number(o[1], double) + self.number(o[2], double))

    def do_FMUL(self, m, o, double=False):
        self.arithmetic(m, o, double, self.number(o[1], double) * self.number(o[2], double))

    def do_FFMA(self, m, o, double=False):
        x, y, z = (self.number(v, double) for v in o[1:4])
        self.arithmetic(m, o, double, x * y + z)

    def do_DADD(self, m, o):
        self.do_FADD(m, o, True)

    def do_DMUL(self, m, o):
        self.do_FMUL(m, o, True)

    def do_DFMA(self, m, o):
        self.do_FFMA(m, o, True)

    def do_MUFU(self, m, o):
        if m[0].endswith("64H"):
            return self.write(o[0], bits_f64(SPECIAL[m[0]](f64(self.word(o[1]) << 32))) >> 32)
        self.write(o[0], bits_f32(SPECIAL[m[0]](self.number(o[1]))))

    def do_FMNMX(self, m, o):
        x, y = self.number(o[1]), self.number(o[2])
        self.write(o[0], bits_f32(y if x != x else x if y != y else (min if self.predicate(o[3]) else max)(x, y)))

    def do_FSETP(self, m, o, double=False):
        x, y, c = self.number(o[2], double), self.number(o[3], double), m[0]
        unordered = x != x or y != y
        self.set_predicates(m, o, compared(c, x, y, unordered), self.predicate(o[4]))

    def do_FSET(self, m, o):
        self.do_FSETP(m[1:], ["FSET", "PT", *o[1:]])
        self.write(o[0], bits_f32(self.predicates["FSET"]))

    def do_DSETP(self, m, o):
        self.do_FSETP(m, o, True)

    def do_FCHK(self, m, o):
        x, y = abs(self.number(o[1])), abs(self.number(o[2]))
        self.predicates[o[0]] = not (1e-30 < x < 1e30 or x == 0) or not 1e-30 < y < 1e30

    def do_FRND(self, m, o):
        x, double = self.number(o[1], "F64" in m), "F64" in m
        if math.isfinite(x):
            x = math.copysign(float(rounded(m, x)), x)
        self.write(o[0], bits_f64(x) if double else bits_f32(x), double)

    def do_F2F(self, m, o):
        x = self.number(o[1], m[1] == "F64")
        self.write(o[0], bits_f64(x) if m[0] == "F64" else bits_f32(x), m[0] == "F64")

    def do_I2F(self, m, o):
        wide = "S64" in m or "U64" in m
        x = self.word(o[1], wide)
        x = float(x if "U64" in m or "U32" in m else signed(x, 64 if wide else 32))
        self.write(o[0], bits_f64(x) if "F64" in m else bits_f32(x), "F64" in m)

    do_I2FP = do_I2F

    def do_F2I(self, m, o):
        x = self.number(o[1], "F64" in m)
        width, unsigned = 64 if "S64" in m or "U64" in m else 32, "U32" in m or "U64" in m
        least, most = (0, (1 << width) - 1) if unsigned else (-1 << (width - 1), (1 << (width - 1)) - 1)
        x = 0 if x != x else most if x == math.inf else least if x == -math.inf else rounded(m, x)
        self.write(o[0], max(least, min(x, most)), width == 64)

    # --- integers ---

    def do_ISETP(self, m, o):
        x, y = self.integers(m, o[2:4])
        value = compared(m[0], x, y, False)
        if "EX" in m and x == y:  # the lower halves decide
            value = m[0] != "NE" and self.predicate(o[5]) or m[0] == "NE" and self.predicate(o[5])
        elif "EX" in m:
            value = m[0] == "NE" if m[0] in ("EQ", "NE") else (x > y) == (m[0][0] == "G")
        self.set_predicates(m, o, value, self.predicate(o[4]))

    def do_VIMNMX(self, m, o):
        self.write(o[0], (min if self.predicate(o[-1]) else max)(self.integers(m, o[1:-1])))

    do_VIMNMX3 = do_VIMNMX

    def do_VIADDMNMX(self, m, o):
        x, y, z = self.integers(m, o[1:4])
        self.write(o[0], (min if self.predicate(o[4]) else max)(signed(x + y), z))

    def do_VIADD(self, m, o):
        self.write(o[0], self.word(o[1]) + self.word(o[2]))

    def do_IABS(self, m, o):
        self.write(o[0], abs(signed(self.word(o[1]))))

    def do_IADD3(self, m, o):
        carries = [x for x in o[1:3] if re.match(r"U?P", x)]
        terms = o[1 + len(carries):]
        value = sum(map(self.word, terms[:3])) + ("X" in m) * sum(map(self.predicate, terms[3:]))
        for i, name in enumerate(carries):
            self.predicates[name] = value >> 32 > i
        self.write(o[0], value)

    def do_IMAD(self, m, o):
        if "MOV" in m:
            return self.write(o[0], self.word(o[3]))
        o = [x for i, x in enumerate(o) if i != 1 or not re.match(r"U?P", x)]
        x, y = self.integers(m, o[1:3])
        if "WIDE" in m or "HI" in m:
            value = x * y + self.word(o[3], True)
            return self.write(o[0], value >> 32 if "HI" in m else value, "WIDE" in m)
        self.write(o[0], x * y + self.word(o[3]) + ("X" in m and self.predicate(o[4])))

    def do_LEA(self, m, o):
        carry = o[1] if re.match(r"U?P", o[1]) else None
        terms = o[2:] if carry else o[1:]
        if "HI" not in m:
            value = (self.word(terms[0]) << int(terms[2], 0) & WORD) + self.word(terms[1])
        elif "SX32" in m:
            value = (signed(self.word(terms[0])) << int(terms[2], 0) >> 32) + self.word(terms[1])
        else:
            value = ((self.word(terms[2]) << 32 | self.word(terms[0])) << int(terms[3], 0) >> 32 & WORD)
            value += self.word(terms[1])
        if "X" in m:
            value += self.predicate(terms[-1])
        if carry:
            self.predicates[carry] = value >> 32
        self.write(o[0], value)

    def do_LOP3(self, m, o):
        o = o if re.match(r"U?P", o[0]) else ["PT", *o]
        x, y, z = map(self.word, o[2:5])
        value = 0
        for i in range(8):
            if int(o[5], 0) >> i & 1:
                value |= (x if i & 4 else ~x) & (y if i & 2 else ~y) & (z if i & 1 else ~z)
        self.predicates[o[0]] = value & WORD != 0
        self.write(o[1], value)

    def do_PLOP3(self, m, o):
        x, y, z = map(self.predicate, o[2:5])
        value = int(o[5], 0) >> (4 * x + 2 * y + z) & 1
        self.predicates[o[0]], self.predicates[o[1]] = bool(value), not value

    def do_SHF(self, m, o):
        low, by, high = map(self.word, o[1:4])
        by, both = by & 63 if "W" in m else min(by, 64), high << 32 | low
        if m[0] == "L":
            value = both << by >> 32 if "HI" in m else low << by
        elif "HI" in m:
            value = (signed(high) if m[1][0] == "S" else high) >> by
        else:
            value = (signed(both, 64) if m[1][0] == "S" else both) >> by
        self.write(o[0], value)

    def do_SGXT(self, m, o):
        self.write(o[0], self.word(o[1]) & (1 << self.word(o[2])) - 1)

    def do_FLO(self, m, o):
        self.write(o[0], self.word(o[1]).bit_length() - 1)

    def do_POPC(self, m, o):
        self.write(o[0], self.word(o[1]).bit_count())

    def do_R2P(self, m, o):
        for i in range(7):
            self.predicates[f"P{i}"] = bool(self.word(o[1]) >> i & 1)


def compared(how, x, y, unordered):
    if how in ("NUM", "NAN"):
        return unordered == (how == "NAN")
    if unordered:
        return how.endswith("U")
    return {"GT": x > y, "GE": x >= y, "LT": x < y, "LE": x <= y, "EQ": x == y, "NE": x != y, "MI": x < y,
            "MA": x > y}[how[:2]]


def rounded(modifiers, x):
    return (math.floor if "FLOOR" in modifiers else math.ceil if "CEIL" in modifiers else
            math.trunc if "TRUNC" in modifiers else round)(x)

#!/usr/bin/env python3
"""statements.py BUILD: what README.md and docs/ say of the project's files, options, variables and errors.

Compares with the tree and with `tlc --help`: links and their headings, paths and files in backticks, targets of make,
options of tlc and of the project's own programs, the variables that the library and the command line read, the errors
of tl_status, numbers of kinds and planted faults, and that each table of measurements says when, where and how it was
measured. Prints FILE:LINE of each that is wrong; the last line is "N statements, N wrong".
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.chdir(ROOT)
BUILD = sys.argv[1] if len(sys.argv) > 1 else "build"
DOCS = ["README.md"] + sorted(os.path.join(d, f) for d in ("docs", "docs/guide", "docs/reference", "docs/internals", "docs/notes")
                        for f in os.listdir(d) if f.endswith(".md"))
FILES = [os.path.relpath(os.path.join(d, f), ROOT) for d, dirs, fs in os.walk(ROOT) for f in fs
         if not dirs.__setitem__(slice(None), [x for x in dirs if not x.startswith(("build", ".git"))])]
FILES += [f".ci/{f}" for f in os.listdir(".ci")]
NAMES = {os.path.basename(f) for f in FILES}
FOLDERS = {os.path.dirname(f) for f in FILES}
SOURCE = {f: open(f, encoding="utf-8", errors="replace").read() for f in FILES
          if not f.startswith("docs/") and f.endswith((".c", ".h", ".sh", ".py", ".mk", "Makefile", ".def", ".cmake", ".txt"))}
ALL_SOURCE = "\n".join(SOURCE.values())
RULES = "\n".join(text for f, text in SOURCE.items() if f.endswith((".mk", "Makefile")))
HELP = subprocess.run([f"{BUILD}/tlc", "--help"], capture_output=True, text=True, check=True).stdout
done = wrong = 0


def check(good, where, text):
    global done, wrong
    done += 1
    if not good:
        wrong += 1
        print(f"{where}: {text}")


def slug(heading):
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def lines_of(doc):
    """(number, text, whether in a fenced block)"""
    inside = False
    for n, line in enumerate(open(doc, encoding="utf-8"), 1):
        fence = line.startswith("```")
        yield n, line.rstrip("\n"), inside or fence
        inside ^= fence


HEADINGS = {doc: {slug(re.sub("^#+ ", "", t)) for _, t, code in lines_of(doc) if not code and re.match("#+ ", t)}
            | set(re.findall('<a name="([^"]+)">', open(doc, encoding="utf-8").read())) for doc in DOCS}
MADE = {doc: set(re.findall(r"(?:file=|-o |:>|> )([\w.-]+)", open(doc, encoding="utf-8").read())) for doc in DOCS}


def check_links(doc, n, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub("`[^`]*`", "", text)):
        if re.match("[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        to = os.path.normpath(os.path.join(os.path.dirname(doc), path)) if path else doc
        check(os.path.exists(to), f"{doc}:{n}", f"the link {target} leads to no file")
        if anchor and to in HEADINGS:
            check(anchor in HEADINGS[to], f"{doc}:{n}", f"the link {target} leads to no heading")


def is_path(word):
    return re.fullmatch(r"[\w.+-]+(/[\w.+-]+)+/?|[\w+-]+\.(c|h|y|l|def|sh|py|mk|tl|md|test|supp)", word) is not None


def exists(doc, word):
    path = word.rstrip("/")
    if path.startswith("build"):  # a program that make builds, or a folder of theirs
        name = os.path.basename(path)
        return (os.path.exists(path) or name in ALL_SOURCE or f"{name}.c" in NAMES)
    if "/" not in path:
        return path in NAMES or path in MADE[doc]
    return any(f == path or f.endswith("/" + path) for f in FILES) or any(d == path or d.endswith("/" + path) for d in FOLDERS)


# words with a slash that are no paths of the project
OTHER = re.compile(r"(dev|tmp|usr|etc|proc|lib)/|[A-Z]+[/.]|.*/([A-Z]+|tlc|cpu)$|\d+/|.*/\d+$|grid\.y$|\./program$")


def check_words(doc, n, text):
    for code in re.findall(r"`([^`]+)`", text):
        for word in re.findall(r"(?<![\w~$/<*{-])[\w.+/-]+(?![\w*{<-])", code):
            word = word.rstrip(".,:")
            if is_path(word) and not OTHER.match(word) and "://" not in code:
                check(exists(doc, word), f"{doc}:{n}", f"there is no {word}")
        for target in re.findall(r"^(?:nice )?make ((?:[a-z][\w-]*)(?: [a-z][\w-]*)*)(?![\w/=])", code):
            for t in target.split():
                check(re.search(rf"^[\w $().-]*\b{t}\b[^=\n]*:", RULES, re.M),
                      f"{doc}:{n}", f"make has no target {t}")
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", code):
            check(re.search(rf"{option}\b", HELP) or option in ALL_SOURCE or option in FOREIGN, f"{doc}:{n}",
                  f"no program here has an option {option}")


# of programs that are not the project's
FOREIGN = {"--nvtx", "--nvtx-include", "--trace", "--set", "--import-source", "--no-deps", "--static", "--cflags", "--libs",
           "--libs-only-l", "--args"}


def table_rows(doc, heading, cell):
    """The words in backticks of the first cells of the tables under a heading."""
    under, found = False, {}
    for n, text, code in lines_of(doc):
        if re.match("#+ ", text) and not code:
            under = slug(re.sub("^#+ ", "", text)) == heading
        if under and text.startswith("|"):
            for word in re.findall(cell, text.split("|")[1]):
                found[word] = n
    return found


def check_tables():
    read = set()
    for f, text in SOURCE.items():
        if f.startswith(("runtime/", "compiler/")):
            read |= set(re.findall(r'(?:getenv|is_set|flag|switched|env\w*)\("(TL_[A-Z_]+)"', text)) | set(re.findall(r'"(TL_[A-Z_]+)"', text))
    told = table_rows("docs/reference/runtime.md", "environment-variables", r"`(TL_[A-Z_]+)")
    for name in sorted(read):
        check(name in told, "docs/reference/runtime.md", f"the table of environment variables lacks {name}")
    for name, n in told.items():
        check(name in read, f"docs/reference/runtime.md:{n}", f"nothing reads {name}")
    enum = re.search(r"typedef enum tl_status \{(.*?)\}", SOURCE["runtime/tl.h"], re.S)
    errors = set(re.findall(r"\bTL_(?:OK|ERR_\w+)", re.sub(r"/\*.*?\*/", "", enum.group(1), flags=re.S)))
    rows = table_rows("docs/reference/runtime.md", "errors", r"`(TL_\w+)`")
    for name in sorted(errors ^ set(rows)):
        check(False, "docs/reference/runtime.md", f"tl_status and the table of errors differ in {name}")
    check(True, "", "")


MEASURED = re.compile(r"\d\s*(ms|µs|us|s|TFLOPS|TOPS|GB/s|GFLOPS|TB/s|%)\b|\d\.\d+ ?\|")


def check_measurements(doc):
    """Each table of measurements: the text from its heading on says the date and the command."""
    above, table, start = "", [], 0
    rows = list(lines_of(doc)) + [(0, "# end", False)]
    for n, text, code in rows:
        if text.startswith("|") and not code:
            start = start or n
            table.append(text)
            continue
        if table:
            if sum(bool(MEASURED.search(r)) for r in table) * 2 > len(table):
                check(re.search(r"20\d\d-\d\d-\d\d", above), f"{doc}:{start}", "the table does not say when it was measured")
                check(re.search(r"H100|H200|EPYC|A100|CPU|processor|core", above), f"{doc}:{start}", "the table does not say on which machine")
                check(re.search(r"`[^`]*(tests/|tlc |make |build/)[^`]*`|```", above), f"{doc}:{start}", "the table does not say by which command")
            table, start = [], 0
        above = "" if re.match("# |## ", text) and not code else above + text + "\n"


for doc in DOCS:
    for n, text, code in lines_of(doc):
        if not code:
            check_links(doc, n, text)
            check_words(doc, n, text)
check_tables()
for doc in ("README.md", "docs/performance.md", "docs/notes/measurements.md"):
    check_measurements(doc)
print(f"{done} statements, {wrong} wrong")
sys.exit(wrong != 0)

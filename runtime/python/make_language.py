"""make_language.py FOLDER TLC…: writes the built-in functions of the language as Python functions, which give editors
and type checkers their parameters, and which raise an error outside of kernels.

The list is that of `tlc list --builtins`; TLC… is the command tlc. FOLDER receives a module for each group of names.
"""

import os
import re
import subprocess
import sys

GROUPS = {"tl": "_builtins", "libdevice": os.path.join("extra", "libdevice"),
          "tl.extra.cuda": os.path.join("extra", "cuda", "_functions"), "tl.target_info": "target_info",
          "triton_helpers": "_inductor"}
# names that core.py has
CLASSES = {"aggregate_replace", "dtype", "pointer_type", "block_type", "tuple_type", "constexpr_type", "tensor",
           "tensor_descriptor", "tensor_descriptor_base", "tuple", "get_int_dtype"}
HEAD = '''"""Functions of the language; written by make_language.py. They exist in kernels only."""

from libtl.language import core as tl


def _in_kernels(name):
    raise RuntimeError(f"{name} exists in kernels only, under @libtl.jit")

'''


def functions(tlc):
    """Group, name and parameters of each function."""
    text = subprocess.run([*tlc, "list", "--builtins"], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        m = re.match(r"([\w.]+)\.(\w+)\((.*)\)", line.partition("\t")[0])
        if m and m[1] in GROUPS and not (m[1] == "tl" and m[2] in CLASSES):
            yield m[1], m[2], m[3]


def written(group, name, parameters):
    shown = f"tl.{group}.{name}" if not group.startswith("tl") else f"{group}.{name}"
    keyword_only = re.sub(r"\*(\w+)(, .*=)", r"*\1\2", parameters)
    return f'\ndef {name}({keyword_only}):\n    _in_kernels("{shown}")\n'


def main(folder, *tlc):
    texts = {group: HEAD for group in GROUPS}
    names = {group: [] for group in GROUPS}
    for group, name, parameters in functions(tlc):
        if name not in names[group]:
            names[group].append(name)
            texts[group] += written(group, name, parameters)
    for group, text in texts.items():
        path = os.path.join(folder, GROUPS[group] + ".py")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text + f"\n\n__all__ = {names[group]!r}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

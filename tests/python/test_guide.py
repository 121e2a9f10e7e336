"""The programs of the guide: the blocks marked py of each page, in order, as one file."""

import os
import re
import subprocess
import sys

import pytest

PYTHON = os.environ.get("LIBTL_PYTHON", sys.executable)  # under qemu, a script that starts it
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GUIDE = os.path.join(TOP, "docs", "guide")
PAGES = [p for p in sorted(os.listdir(GUIDE)) if "\n```py\n" in open(os.path.join(GUIDE, p), encoding="utf-8").read()]


def program(text):
    """The blocks, with the other lines empty, so that line numbers are the page's."""
    lines, inside = [], False
    for line in text.splitlines():
        fence = re.match(r"```(\w*)", line)
        lines.append(line if inside and not fence else "")
        inside = bool(fence) and fence[1] == "py" if not inside else not fence
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path):
    text = program(open(os.path.join(GUIDE, page), encoding="utf-8").read())
    if "import torch" in text:
        pytest.importorskip("torch")
    path = tmp_path / page.replace(".md", ".py")
    path.write_text(text, encoding="utf-8")
    r = subprocess.run([PYTHON, str(path)], capture_output=True, text=True, check=False)
    assert r.returncode == 0, r.stdout + r.stderr

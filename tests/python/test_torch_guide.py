"""The code of docs/guide/torch-compile.md, each block in a process of its own.

PYTHONPATH=build/python python3 tests/python/test_torch_guide.py
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("PyTorch is not installed")

GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "guide", "torch-compile.md")


class Guide(unittest.TestCase):

    def test_blocks(self):
        text = open(GUIDE, encoding="utf-8").read()
        blocks = re.findall(r"^```py\n(.*?)^```", text, re.M | re.S)
        self.assertGreater(len(blocks), 1)
        outputs = []
        for i, block in enumerate(blocks):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "block.py")
                with open(path, "w") as f:
                    f.write(block)
                done = subprocess.run([sys.executable, "-W", "ignore", path], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"block {i + 1}: {done.stderr}")
            outputs.append(done.stdout)
        self.assertRegex(outputs[0], r"Statistics\(compiled=[1-9]\d*, fallbacks=0\)")


if __name__ == "__main__":
    unittest.main()

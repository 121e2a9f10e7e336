"""tokens.py PROGRAM: the program's byte pair encoding against the package tokenizers, whose merges it learns from texts.

PROGRAM is build/tests/gpt_tokens: it prints the tokens of standard input, and fails where they are not its bytes again."""
import glob
import random
import subprocess
import sys
import tempfile

from tokenizers import ByteLevelBPETokenizer

with tempfile.TemporaryDirectory() as folder:
    theirs = ByteLevelBPETokenizer(add_prefix_space=False)
    theirs.train(glob.glob("docs/*.md"), vocab_size=2000, show_progress=False)
    theirs.save_model(folder)
    rng = random.Random(1)
    alphabets = ["abc xyz'stredlvm  \n\t", "äöüßéñ Straße ", "数字 漢字 かな ", "١٢٣ ½ ² ٣ 123", "😀👩‍👩‍👧 \u00a0\u2003\u3000 x", "אבג  हिन्दी กขค ",
                 "".join(map(chr, range(1, 128)))]
    texts = [open(f).read() for f in glob.glob("docs/*.md")] + ["", " ", "  ", "\n", "a" * 5000, " " * 3000, "don't we'll I'VE it's 'tis"]
    for _ in range(1500):
        alphabet = rng.choice(alphabets)
        texts.append("".join(rng.choice(alphabet) for _ in range(rng.randrange(40))))
    for _ in range(300):
        texts.append("".join(chr(rng.choice([rng.randrange(1, 0xD800), rng.randrange(0xE000, 0x3000 + 0xE000), rng.randrange(0x10000, 0x20000)]))
                             for _ in range(20)))
    passed = failed = 0
    for text in texts:
        ours = subprocess.run([sys.argv[1], folder], input=text.encode(), capture_output=True)
        if not ours.returncode and list(map(int, ours.stdout.split())) == theirs.encode(text).ids:
            passed += 1
            continue
        failed += 1
        if failed < 5:
            print(repr(text[:80]), theirs.encode(text).tokens[:40], ours.stdout[:200], ours.stderr)
    for _ in range(200):
        ours = subprocess.run([sys.argv[1], folder], input=rng.randbytes(rng.randrange(200)), capture_output=True)
        passed, failed = passed + (not ours.returncode), failed + bool(ours.returncode)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)

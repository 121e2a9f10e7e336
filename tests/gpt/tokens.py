"""tokens.py PROGRAM: the byte pair encoding of examples/gpt against one written here, and against the package tokenizers
where it is installed, by merges learned from the project's texts. PROGRAM is build/tests/gpt_tokens: it prints the tokens of
standard input, and fails where they are not its bytes again. Ends in "N passed, N failed"."""
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unicodedata

PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [b for b in range(256) if b not in PRINTABLE]
LETTER = {**{b: chr(b) for b in PRINTABLE}, **{b: chr(256 + i) for i, b in enumerate(OTHERS)}}
PATTERN = re.compile(r" ?l+| ?n+| ?o+|[ s]+(?![^ s])|[ s]+")
ENDINGS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")


def kind(c):
    if c == " ":
        return " "
    if c.isspace() and not "\x1c" <= c <= "\x1f":
        return "s"
    return {"L": "l", "N": "n"}.get(unicodedata.category(c)[0], "o")


def words(text):
    kinds, at = "".join(map(kind, text)), 0
    while at < len(text):
        ending = next((e for e in ENDINGS if text.startswith(e, at)), None)
        end = at + len(ending) if ending else PATTERN.match(kinds, at).end()
        yield tuple(LETTER[b] for b in text[at:end].encode())
        at = end


def merged(word, pair):
    out, i = [], 0
    while i < len(word):
        both = word[i:i + 2] == pair
        out.append(pair[0] + pair[1] if both else word[i])
        i += 1 + both
    return tuple(out)


def learn(text, n):
    counts, merges = collections.Counter(words(text)), []
    for _ in range(n):
        pairs = collections.Counter()
        for word, count in counts.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        merges.append(max(pairs, key=lambda p: (pairs[p], p)))
        shrunk = collections.Counter()
        for word, count in counts.items():
            shrunk[merged(word, merges[-1])] += count
        counts = shrunk
    return merges


def encode(text, ranks, ids):
    out = []
    for word in words(text):
        while True:
            known = [p for p in zip(word, word[1:]) if p in ranks]
            if not known:
                break
            word = merged(word, min(known, key=ranks.get))
        out += [ids[t] for t in word]
    return out


def texts(rng):
    yield from ["", " ", "  ", "\n", "a" * 2000, " " * 999, "don't we'll I'VE it's 'tis", "x\x1cy\x85z"]
    yield open("docs/guide/tour.md").read()
    alphabets = ["abc xyz'stredlvm  \n\t", "äöüßéñ Straße ", "数字 漢字 かな ", "١٢٣ ½ ² ٣ 123", "😀👩‍👧 \u00a0\u2003\u3000 x", "אבג  हिन्दी กขค ",
                 "".join(map(chr, range(1, 128)))]
    for _ in range(150):
        alphabet = rng.choice(alphabets)
        yield "".join(rng.choice(alphabet) for _ in range(rng.randrange(60)))
    for _ in range(50):
        known = (chr(c) for c in iter(lambda: rng.choice([rng.randrange(1, 0xD800), rng.randrange(0x10000, 0x20000)]), None))
        yield "".join(c for c, _ in zip((c for c in known if unicodedata.category(c) != "Cn"), range(50)))


def main():
    rng, passed, failed = random.Random(1), 0, 0

    def verdict(good, *what):
        nonlocal passed, failed
        passed, failed = passed + good, failed + (not good)
        if not good:
            print(*what)

    merges = learn(open("docs/guide/tour.md").read(), 150)
    tokens = [LETTER[b] for b in range(256)] + [a + b for a, b in merges] + ["<|endoftext|>"]
    ids, ranks = {t: i for i, t in enumerate(tokens)}, {m: i for i, m in enumerate(merges)}
    with tempfile.TemporaryDirectory() as folder:
        vocabulary, listed = json.dumps(ids), "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges)

        def run(data, vocabulary=vocabulary, listed=listed):
            for name, content in (("vocab.json", vocabulary), ("merges.txt", listed)):
                with open(os.path.join(folder, name), "w") as f:
                    f.write(content)
            return subprocess.run([sys.argv[1], folder], input=data, capture_output=True)

        try:
            from tokenizers import ByteLevelBPETokenizer
        except ImportError:
            theirs = None
        else:
            run(b"")
            theirs = ByteLevelBPETokenizer(f"{folder}/vocab.json", f"{folder}/merges.txt", add_prefix_space=False)
        for text in texts(rng):
            ours = run(text.encode())
            got = list(map(int, ours.stdout.split()))
            verdict(not ours.returncode and got == encode(text, ranks, ids), repr(text[:80]), got[:20], ours.stderr)
            if theirs:
                verdict(got == theirs.encode(text).ids, "tokenizers:", repr(text[:80]), got[:20], theirs.encode(text).ids[:20])
        for _ in range(50):
            verdict(not run(rng.randbytes(rng.randrange(200))).returncode, "random bytes are not their tokens'")
        for _ in range(100):  # damaged files: a message, or what is there
            damaged = [vocabulary, listed]
            i, at = rng.randrange(2), rng.random()
            at = int(at * len(damaged[i]))
            damaged[i] = damaged[i][:at] + rng.choice(["", chr(rng.randrange(32, 400)) + damaged[i][at + 1:]])
            ours = run(b"some text", *damaged)
            verdict(ours.returncode == 0 or ours.returncode == 2 and ours.stderr.startswith(b"gpt: error: "), damaged[i][at - 9:at + 9], ours)
        for part, want in ((lambda v: v.replace('": 7,', '": 8,'), b"two tokens of one number"), (lambda v: v[:-200], b"byte "),
                           (lambda v: v.replace('": 300,', '": 3000,'), b"but none 300"), (lambda v: v.replace('"', "'"), b"'\"' expected")):
            ours = run(b"", vocabulary=part(vocabulary))
            verdict(ours.returncode == 2 and want in ours.stderr, want, ours)
        for change, want in (("Q\n", b":152: two tokens"), ("Q Q\n", b":152: 'Q Q' names or makes a token")):
            ours = run(b"", listed=listed + change)
            verdict(ours.returncode == 2 and want in ours.stderr, want, ours)
        ours = run(b"", listed=listed[:listed.index("\n", 200) + 1])
        verdict(ours.returncode == 2 and b"truncated" in ours.stderr, "truncated merges", ours)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())

#!/bin/sh
# One direction: a folder includes only itself and the folders before it; a header's name is unique.
set -eu
python3 - << 'END'
import glob, os, re, sys

ORDER = """support layout lang ir frontend analysis transform llvm gpu gpu/layout gpu/tma gpu/smem gpu/pipeline gpu/codegen cpu
	interp driver runtime runtime/image runtime/device runtime/api runtime/cache runtime/remote runtime/launch runtime/tune runtime/sim
	runtime/emulate runtime/aot cli""".split()
rank = {"compiler/" + folder if not folder.startswith(("lang", "runtime")) else folder: i for i, folder in enumerate(ORDER)}
rank["compiler/frontend/python"] = rank["compiler/frontend"]
rank["compiler/ir/import"] = rank["compiler/ir"]
rank["compiler/gpu/codegen"] = rank["compiler/gpu/codegen"]
bad = []
headers = {}
files = [f for root in ("compiler", "runtime", "lang") for f in glob.glob(root + "/**/*.[chly]", recursive=True)]
for path in files:
    folder = os.path.dirname(path)
    if folder not in rank:
        bad.append(f"{path}: its folder has no place in the order of {sys.argv[0] if False else '.ci/check-includes.sh'}")
        continue
    if path.endswith(".h"):
        headers.setdefault(os.path.basename(path), []).append(path)
    for name in re.findall(r'^#include "([^"]+)"', open(path).read(), re.M):
        target = next((p for p in (os.path.join(folder, name), "compiler/" + name, name) if os.path.exists(p)), None)
        if target and rank[os.path.dirname(target)] > rank[folder]:
            bad.append(f"{path} includes {name}, of a later folder")
bad += [f"headers of one name: {' '.join(paths)}" for paths in headers.values() if len(paths) > 1]
print("\n".join(bad) or "includes go one way: " + " ".join(ORDER))
sys.exit(bool(bad))
END

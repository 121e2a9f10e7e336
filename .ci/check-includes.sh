#!/bin/sh
# One direction: a folder includes only itself and the folders before it; a header's name is unique.
set -eu
python3 - << 'END'
import glob, os, re, sys

ORDER = """compiler/support compiler/layout lang compiler/ir compiler/frontend compiler/analysis compiler/transform
    compiler/llvm compiler/gpu compiler/gpu/layout compiler/gpu/tma compiler/gpu/smem compiler/gpu/pipeline
    compiler/gpu/estimate compiler/gpu/codegen compiler/cpu compiler/interp compiler/driver runtime runtime/image runtime/device runtime/api
    runtime/cache runtime/launch runtime/tune runtime/sim runtime/emulate runtime/aot runtime/python/glibc runtime/python/core compiler/cli""".split()
rank = {folder: i for i, folder in enumerate(ORDER)}
for part in "compiler/frontend/python", "compiler/ir/import":
    rank[part] = rank[os.path.dirname(part)]
bad, headers = [], {}
for path in [f for root in ("compiler", "runtime", "lang") for f in glob.glob(root + "/**/*.[chly]", recursive=True)]:
    folder = os.path.dirname(path)
    if folder not in rank:
        bad.append(f"{path}: .ci/check-includes.sh gives its folder no place in the order")
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

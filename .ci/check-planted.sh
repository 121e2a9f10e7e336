#!/bin/sh
# Each command of tests/planted/faults changes its file.
set -eu
python3 .ci/planted.py

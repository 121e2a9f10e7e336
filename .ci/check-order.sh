#!/bin/sh
# C leaves the order of a call's arguments open: at most one of them emits code.
set -eu
python3 .ci/order.py compiler/*/*.[ch] compiler/*/*/*.[ch]
echo "operands emit code in a defined order"

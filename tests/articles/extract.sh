#!/bin/sh
# extract.sh DIR OUT: cuts the kernels out of four published articles, saved as text in DIR, into OUT/*.py.
# The articles are not ours to pass on, so only line numbers are kept here. Host code around a kernel stays; the article
# 004 lost its indentation, which is put back by line number.
set -eu
dir=$1 out=$2
mkdir -p "$out"

# cut ARTICLE NAME SED-SCRIPT
cut() {
	set -- "$dir/$1"_*.txt "$2" "$3"
	sed -n "$3" "$1" > "$out/$2.py"
}
# indent FIRST,LAST…: one level more for each range, printing nothing
in1() { for r; do printf '%ss/^/    /\n' "$r"; done; }

cut 000 000_add     '25,50p'
cut 000 000_softmax '100,119p'
cut 000 000_matmul  '156,200p'
cut 000 000_sketch  '204,220p'
cut 001 001_add     '22,63p'
cut 001 001_softmax '112,199p'
cut 001 001_mean    '305,512p'
cut 002 002_add     '90,126p'
cut 002 002_matmul  '143,176p'
cut 002 002_softmax '183,203p'
cut 002 002_grouped '209,246p'
cut 002 002_debug   '261,337p;339,352p'
cut 004 004_add     "$(in1 45,59)
43,59p"
cut 004 004_softmax "$(in1 77,82 84,112)
72,112p"
cut 004 004_layer_norm "$(in1 171,180 182,209)
169,209p"
cut 004 004_matmul  "$(in1 260,268 270,317 300,309)
258,317p"
cut 004 004_rel_attn "$(in1 343,354 356,432 384,421)
341,430p"
cut 004 004_autotune "$(in1 482,482)
480,482p"

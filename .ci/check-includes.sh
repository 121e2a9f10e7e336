#!/bin/sh
# One direction: a folder includes only itself and the folders before it.
set -eu
order="base layout lang ir eval opt place pipeline check lower host interp target compile.h runtime"
bad=0
before=
for step in $order; do
	before="$before $step"
	case $step in
	lang | runtime) files=$(ls $step/*.[chly]) ;;
	compile.h) files="compiler/compile.h compiler/compile.c compiler/imports.c compiler/fit.h compiler/fit.c" ;;
	*) files=$(ls compiler/$step/*.[ch]) ;;
	esac
	for file in $files; do
		for included in $(sed -n 's/^#include "\([a-z_]*\)\/.*/\1/p; s/^#include "\(compile\.h\)"/\1/p' "$file" | sort -u); do
			case " $before " in
			*" $included "*) ;;
			*)
				echo "$file includes $included, which comes after $step"
				bad=1
				;;
			esac
		done
	done
done
[ $bad = 0 ] && echo "includes go one way: $order"
exit $bad

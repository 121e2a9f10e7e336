#!/bin/sh
# aot.sh BUILD: kernels compiled ahead of time, in programs that link with libtlrt alone, on the driver that the simulator
# makes: what they compute, what they say where a kernel or a driver is missing, and what they are made of.
build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
work=$build/aot-test
rm -rf "$work"
mkdir -p "$work"
san=
nm "$build/libtlrt.a" | grep -q __asan_ && san='-fsanitize=address,undefined' # as it was built

. "$top/tests/checks.sh"

on() { # on ARCHITECTURE COMMAND…: 0 is a driver without a GPU
	sm=$1
	shift
	SIMCUDA=$sm LD_LIBRARY_PATH=$build/simcuda "$@"
}
says() { # says WORDS COMMAND…: it fails, and says that
	words=$1
	shift
	! "$@" > "$work/said" 2>&1 && cat "$work/said" && grep -qF -e "$words" "$work/said"
}
rt() { "${CC:-cc}" -std=c11 -O2 -Wall -Wextra -Werror $san -I"$top/runtime" "$@" "$build/libtlrt.a" -lpthread -ldl; }
same() { # the same input gives the same files
	mkdir -p "$work/again" && "$build/tlc" build "$top/examples/vector_add.tl" $adds -o "$work/again/vector_add" &&
		cmp "$work/vector_add.c" "$work/again/vector_add.c"
}
is_small() { strip -o "$work/small" "$build/libtlrt.a" && [ "$(wc -c < "$work/small")" -lt 200000 ]; }
only_tl() { ! nm -g --defined-only "$build/libtlrt.a" | grep ' [A-Z] ' | grep -v ' tl_'; }
lone() { # in a folder with nothing but the program, what ldd says of it, and the driver
	root=$work/root chroot=$(command -v chroot || echo /usr/sbin/chroot)
	mkdir -p "$root/bin" "$root/driver" && cp "$work/add" "$root/bin" && cp "$build/simcuda/libcuda.so.1" "$root/driver" &&
		for f in $(ldd "$work/add" "$build/simcuda/libcuda.so.1" | grep -o '/[^ ):]*\.so[^ ):]*' | sort -u); do
			mkdir -p "$root$(dirname "$f")" && cp "$f" "$root$f" || return 1
		done
	env -i LD_LIBRARY_PATH=/driver SIMCUDA=90 "$chroot" "$root" /bin/add && says 'no CUDA driver' env -i "$chroot" "$root" /bin/add
}

variants() { sed -n 's|^/\* \([0-9]*\) variants of .*|\1|p' "$1" | awk '{ n += $1 } END { print n }'; } # in a source of tlc build
recorded() { # from a manifest: two kernels, one of them in two variants, on two targets
	for device in sim sim:80; do
		for n in 3001 3000; do
			TL_MANIFEST=$work/used "$build/tlc" run "$top/examples/vector_add.tl" -g 3 --device $device x_ptr="fp32[$n]:ones" \
				y_ptr="fp32[$n]:ones" out_ptr="fp32[$n]" n=$n || return 1
		done
		TL_MANIFEST=$work/used "$build/tlc" run "$top/examples/vector_add.tl" -g 6 --device $device x_ptr="fp16[3000]:ones" \
			y_ptr="fp16[3000]:ones" out_ptr="fp16[3000]" n=3000 -D BLOCK=512 || return 1
	done
	mkdir -p "$work/used.d" && "$build/tlc" build "$work/used" -o "$work/used.d/vector_add" &&
		grep -q '^tl_status add_kernel_2(.*void \*x_ptr_' "$work/used.d/vector_add.h" &&
		grep -m 1 'n=' "$work/used.d/vector_add.h" | grep -q 'n=i32:8' &&
		[ "$(variants "$work/used.d/vector_add.c")" = 10 ] &&
		rt -I"$work/used.d" "$top/examples/aot/add.c" "$work/used.d/vector_add.c" -o "$work/add-used" && on 80 "$work/add-used"
}
recorded_tuples() { # two launches of one launcher
	for n in 32 30; do
		TL_MANIFEST=$work/tuples "$build/tlc" run "$top/tests/aot/composites.tl" -g 1 --device sim d="desc[16,32]:fp32[16,32]:ones" \
			out='(ptr=fp32[512],scale=0.5,step=1)' shape="(16,($n,3))" out_ptr='i32[1]' || return 1
	done
	"$build/tlc" build "$work/tuples" -o "$work/used.d/scaled" && ! grep -q scaled_2 "$work/used.d/scaled.h" &&
		[ "$(variants "$work/used.d/scaled.c")" = 3 ] &&
		grep -q 'float \*out_ptr_, float out_scale_, int32_t out_step_, int32_t shape_0_, int32_t shape_1_0_' "$work/used.d/scaled.h"
}

adds='--target sm_80 --target sm_90a --target cpu'
s16='*fp16:16,*fp16:16,*fp16:16,i32:16,i32:16,i32:16,i32:16,i32:1,i32:16,i32:1,i32:16,i32:1'
check "vector_add" "$build/tlc" build "$top/examples/vector_add.tl" $adds -o "$work/vector_add"
check "the same files again" same
check "matmul" "$build/tlc" build "$top/examples/matmul.tl" -k matmul_kernel -s "$(echo $s16 | sed 's/i32:16/i32:256/g')" -s "$s16" \
	-D BLOCK_M=64 -D BLOCK_N=64 -D BLOCK_K=32 $adds -o "$work/matmul"
check "tuples and a descriptor" "$build/tlc" build "$top/tests/aot/composites.tl" $adds -o "$work/scaled" \
	-s 'd=tensordesc<fp32[16,32]:16>,out=(ptr=*fp32:16,scale=fp32,step=i32:1),shape=(i32:16,(i32:16,3)),out_ptr=*i32' \
	-s 'd=tensordesc<fp32[16,32]>,out=(ptr=*fp32:16,scale=fp32,step=i32:1),shape=(i32,(i32,3)),out_ptr=*i32'
check "a manifest" recorded
by_name() { # the same, recorded on the processor too
	mkdir -p "$work/named" && cp "$work/used" "$work/named/used" && cd "$work/named" || return 1
	TL_MANIFEST=used "$build/tlc" run "$top/examples/vector_add.tl" -g 3 --device cpu x_ptr='fp32[3001]:ones' y_ptr='fp32[3001]:ones' \
		out_ptr='fp32[3001]' n=3001 &&
		TL_MANIFEST=used "$build/tlc" run "$top/examples/vector_add.tl" -g 6 --device cpu x_ptr='fp16[3001]:ones' \
			y_ptr='fp16[3001]:ones' out_ptr='fp16[3001]' n=3001 -D BLOCK=512 &&
		"$build/tlc" build used -o vector_add && cd "$top" &&
		rt -I"$work/named" "$top/tests/aot/library.c" "$work/named/vector_add.c" -o "$work/library" && on 80 "$work/library" &&
		on 90 "$work/library" && "$work/library" cpu
}
one_target() { # in place of those that it was recorded on
	"$build/tlc" build "$work/used" --target sm_90a -o "$work/used.d/one" && [ "$(variants "$work/used.d/one.c")" = 5 ] &&
		! grep -q 'cuda:sm_80' "$work/used.d/one.c"
}
check "a manifest of tuples" recorded_tuples
check "a manifest for one target" one_target
check "kernels by name" by_name
check "a target that is none" says "--target: 'sm_12' is not one of" "$build/tlc" build "$work/used" --target sm_12 -o "$work/used.d/none"
check "types that differ" says 'the types of' "$build/tlc" build "$top/examples/vector_add.tl" -s '*fp32,*fp32,*fp32,i32' \
	-s '*fp16,*fp32,*fp32,i32' -o "$work/none"
check "no name" says '-o NAME is missing' "$build/tlc" build "$top/examples/vector_add.tl"
check "the program in C" rt -I"$work" "$top/examples/aot/add.c" "$work/vector_add.c" -o "$work/add"
check "tuples" rt -I"$work" "$top/tests/aot/composites.c" "$work/scaled.c" -o "$work/composites"
if grep -q avx512_bf16 /proc/cpuinfo && grep -q avx512vbmi /proc/cpuinfo; then
	check "a product for tile registers" "$build/tlc" build "$top/examples/matmul.tl" -k matmul_kernel -s "$(echo $s16 | sed 's/fp16/bf16/g')" \
		-D BLOCK_M=64 -D BLOCK_N=64 -D BLOCK_K=32 --target cpu --target cpu:avx512+amx -o "$work/tiles"
	check "its program" rt -I"$work" "$top/tests/aot/tiles.c" "$work/tiles.c" -o "$work/tiles"
	check "tile registers are used where they are" env LD_PRELOAD="$build/tests/libamx.so" "$work/tiles"
fi
check "the products" rt -I"$work" "$top/tests/aot/matmul.c" "$work/matmul.c" -o "$work/products"
for sm in 80 86 90; do
	check "the program in C on sm_$sm" on $sm "$work/add"
	check "the products on sm_$sm" on $sm "$work/products"
	check "tuples on sm_$sm" on $sm "$work/composites"
done
for level in baseline native; do
	for program in add products composites; do
		check "$program on the processor, $level" env TL_CPU=$level LD_LIBRARY_PATH= "$work/$program" cpu
	done
done
same_members() { # those of tl_config and of Config in add.rs, in their order; and the size
	sed -n '/^typedef struct tl_config {/,/^}/p' "$top/runtime/tl.h" | sed '/^}/d; s|/\*.*||; s|^\t* \*.*||' | grep -o '[a-z_0-9]*\(\[[0-9]*\]\)\{0,1\};' | sed 's/[[;].*//' > "$work/members.c"
	sed -n 's/^    \([a-z_]*\): .*/\1/p; /^}/q' "$top/examples/aot/add.rs" > "$work/members.rs"
	[ "$(wc -l < "$work/members.c")" -gt 10 ] && diff "$work/members.c" "$work/members.rs" &&
		echo "#include <tl.h>
		_Static_assert(sizeof(tl_config) == $(sed -n 's/.*size_of::<Config>() == \([0-9]*\).*/\1/p' "$top/examples/aot/add.rs"), \"size\");" |
			"${CC:-cc}" -I"$top/runtime" -x c -fsyntax-only -
}
# Names. A kernel called like a word of C or C++, or like something that programs have, is refused, but not behind a prefix.
named() { # named NAME [PARAMETER]: a source with a kernel of this name
	printf 'import triton\nimport triton.language as tl\n@triton.jit\ndef %s(p, %s):\n    tl.store(p, %s)\n' "$1" "${2:-n}" "${2:-n}"
}
compiles() { # compiles NAME: what tlc build made of it, in C and in C++, strictly
	"${CC:-cc}" -std=c99 -pedantic-errors -Wall -Wextra -Werror -I"$top/runtime" -c "$work/named/$1.c" -o "$work/named/$1.o" &&
		"${CXX:-g++}" -x c++ -std=c++11 -pedantic-errors -Wall -Wextra -Werror -I"$top/runtime" -c "$work/named/$1.c" -o "$work/named/$1++.o"
}
refused() { # with the name, and builds with a prefix
	named "$1" > "$work/named/word.tl"
	says "cannot have the name '$1'" "$build/tlc" build "$work/named/word.tl" -s '*fp32,fp32' --target sm_80 -o "$work/named/word" &&
		"$build/tlc" build "$work/named/word.tl" -s '*fp32,fp32' --target sm_80 -o "$work/named/word" --prefix my_ && compiles word &&
		nm "$work/named/word.o" | grep -q " T my_$1\$"
}
parameters() { # of all these names, and launched
	{
		printf 'import triton\nimport triton.language as tl\n@triton.jit\ndef größe(p'
		printf ', %s' $odd
		printf '):\n    tl.store(p, 0'
		printf ' + %s' $odd
		printf ')\n'
	} > "$work/named/words.tl"
	"$build/tlc" build "$work/named/words.tl" -s "*i32$(printf ',i32%.0s' $odd)" --target cpu -o "$work/named/words" && compiles words || return 1
	cat > "$work/named/main.c" <<-EOF
		#include "words.h"
		int main(void)
		{
			tl_context *c;
			tl_compiled *k;
			tl_config cfg = {.grid = {1}};
			int32_t sum = -1;
			return tl_context_create("cpu", &c) || gru00f6u00dfe_load(c, &k) || gru00f6u00dfe(k, &cfg, &sum$(printf ', 3%.0s' $odd)) ||
				tl_synchronize(c) || sum != 3 * $(echo $odd | wc -w);
		}
	EOF
	rt -I"$work/named" "$work/named/main.c" "$work/named/words.c" -o "$work/named/main" && "$work/named/main"
}
odd='double int new this template args kernel cfg out ctx NULL errno EOF __LINE__ __LINE_ __func_ __asm_ _x _Bool _Bool_ x x_ é main free memcpy tl_launch'
collide() { # launchers of a manifest: kernels that are called like another one's loader, like another one in ASCII, like the table
	for kernel in f f_load f_2 named_table ü u00fc; do
		named $kernel > "$work/named/$kernel.tl"
		TL_MANIFEST=$work/named/used.json "$build/tlc" run "$work/named/$kernel.tl" -g 1 --device cpu 'p=fp32[4]' n=1.5 || return 1
	done
	"$build/tlc" build "$work/named/used.json" -o "$work/named/named" && compiles named && nm "$work/named/named.o" | grep -q ' T u00fc_2_load'
}
depfile() { # read by make and ninja: made again after a change of an import, and only then
	mkdir -p "$work/dep" && cd "$work/dep" || return 1
	mkdir -p 'a b#c$d'
	named add | sed 's/^import triton$/&\nfrom help import one/; s/tl.store(p, n)/tl.store(p, n + one())/' > 'a b#c$d/k.py'
	printf 'import triton\nimport triton.language as tl\n@triton.jit\ndef one():\n    return 1\n' > 'a b#c$d/help.py'
	printf '%s\n' 'out.c: a\ b\#c$$d/k.py' "	$build/tlc build 'a b#c\$\$d/k.py' -s '*fp32,fp32' --target sm_80 -o out --depfile out.d" '	echo made >> log' '-include out.d' > Makefile
	printf '%s\n' 'rule tlc' "  command = $build/tlc build 'a b#c\$\$d/k.py' -s '*fp32,fp32' --target sm_80 -o out --depfile out.d && echo made >> log" \
		'  depfile = out.d' 'build out.c out.h: tlc a$ b#c$$d/k.py' > build.ninja
	for tool in make ninja; do
		command -v $tool > /dev/null || continue
		rm -f out.* log .ninja_*
		$tool && $tool && [ "$(wc -l < log)" = 1 ] && touch -d '+2 seconds' 'a b#c$d/help.py' && $tool && [ "$(wc -l < log)" = 2 ] || return 1
		touch -d '-2 seconds' 'a b#c$d/help.py'
	done
}
mkdir -p "$work/named"
for word in double free printf main new template tl_launch tl_module errno NULL EOF _Bool __func__ std index typeof linux size_t; do
	check "a kernel called $word" refused $word
done
check "parameters of any name" parameters
check "launchers whose names collide" collide
check "the depfile" depfile
mkdir -p "$work/gpu"
check "kernels for a GPU alone" "$build/tlc" build "$top/examples/vector_add.tl" --target sm_80 -o "$work/gpu/vector_add"
check "a program for a GPU alone" rt -I"$work/gpu" "$top/examples/aot/add.c" "$work/gpu/vector_add.c" -o "$work/gpu/add"
check "on the processor" says 'was not compiled for this CPU, but for cuda:sm_80' "$work/gpu/add" cpu
check "a GPU that is too old" says 'was not compiled for this GPU, sm_75, but for cuda:sm_80, cuda:sm_90a' on 75 "$work/add"
check "no GPU" says 'no device' on 0 "$work/add"
check "no driver" says 'no device' env LD_LIBRARY_PATH= "$work/add"
[ -n "$san" ] || check "libtlrt.a has less than 200 KB" is_small
check "names in libtlrt.a" only_tl
[ "$(id -u)" = 0 ] && check "the program alone" lone
check "the structure of the program in Rust" same_members
if [ -z "$san" ] && command -v rustc > /dev/null; then
	check "its kernels" "${CC:-cc}" -O2 -c -I"$work" -I"$top/runtime" "$work/vector_add.c" -o "$work/vector_add.o"
	check "the program in Rust" rustc -O "$top/examples/aot/add.rs" -o "$work/add-rust" -C link-arg="$work/vector_add.o" \
		-C link-arg="$build/libtlrt.a"
	check "the program in Rust on sm_90" on 90 "$work/add-rust"
	check "the program in Rust on the processor" "$work/add-rust" cpu
fi
echo "$npass passed, $nfail failed"
[ $nfail = 0 ]

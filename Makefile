# make            build/tlc, build/libtl.a, build/libtl.so, build/libtlrt.a
# make STATIC=1   the same, with LLVM linked statically into tlc and libtl.so (what to carry elsewhere), stripped, and without
#                 the verifiers of the tile IR and of LLVM's
# make demo       every example on the best device here, checked against references
# make test       the tests of each part, with a share of the cases; ends in "N passed, N failed"
# make test-all   all cases; make test-share: a sixth of them, which changes with the commit
# make test-planted  ten planted faults, which the tests must find
# make test-threads  the tests in which threads share things, under the thread sanitizer
# make test-cross     a share of the tests, built for arm64 and run by qemu
# make test-package   the Debian packages in a clean root, with programs that use them
# make test-gpu   what can only be tested on a GPU, under compute-sanitizer too where it is installed
# make python     the Python package libtl in build/python, for PYTHONPATH; make wheel: with LLVM inside, as build/wheel/*.whl
# make test-python  the Python package, installed from the wheel; with TREE=1 the package in build/python
# make docs       the parameters in docs/reference/builtins.md
# make deb        Debian packages: tlc, libtl0, libtl-dev
# make install    into $(DESTDIR)$(PREFIX), with files for pkg-config and CMake; make uninstall removes all of it
# make cross      the same programs and libraries for arm64, in build-arm64; make cross-deb: the packages, also make deb ARCH=arm64;
#                 make cross GOAL=wheel: the Python package, GOAL=test-python: its tests, by qemu
# V=1 shows the commands. SAN=1 adds the address and undefined-behaviour sanitizers, and gives variables that nothing
# initialises a value that these find; SAN=thread adds the thread sanitizer; BUILD=dir builds elsewhere.

# as many jobs as processors, unless -j says how many
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif
BUILD ?= build
Q = $(if $(V),,@)
say = $(if $(V),@:,@echo '  $(1)	$(2)')
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
VERSION = $(shell sed -n 's/^.define TL_VERSION "\(.*\)"/\1/p' runtime/tl.h)
# the name that programs look for: another number where what they rely on has changed
SONAME = libtl.so.0
LLVM_CONFIG ?= llvm-config-19
CC = gcc
CXX = g++
OPT ?= -O2
WARN = -Wall -Wextra -Werror -Wno-unknown-pragmas
PATTERN = -ftrivial-auto-var-init=pattern
ifeq ($(SAN),thread)
SAN_FLAGS = -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan
else
SAN_FLAGS = $(if $(SAN),-fsanitize=address$(,)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer $(PATTERN))
endif
, = ,
CFLAGS = -std=c11 -D_GNU_SOURCE $(OPT) $(DEBUG_INFO) $(WARN) -fPIC -fvisibility=hidden -MMD -MP $(SAN_FLAGS) \
	-Icompiler -I. -I$(BUILD)/gen -isystem $(LLVM_INCLUDE)
LLVM_INCLUDE = $(shell $(LLVM_CONFIG) --includedir)
LLVM_COMPONENTS = nvptx x86 aarch64 passes bitreader linker irreader
LLVM_SHARED = $(shell $(LLVM_CONFIG) --link-shared --ldflags --libs)
# without libz3 and libxml2, which nothing here needs
LLVM_STATIC = $(shell $(LLVM_CONFIG) --link-static --ldflags --libs $(LLVM_COMPONENTS)) -l:libz.a -l:libzstd.a
ifdef STATIC
LINK = $(CXX) -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,-s
LINK_LLVM = $(LLVM_STATIC)
LIBLZMA = -l:liblzma.a
# not PIE: LLVM's tables would be 56,000 relocations at each start
LINK_PROGRAM = $(LINK) -no-pie
CFLAGS += -DNDEBUG
else
DEBUG_INFO = -g
LIBLZMA = -llzma
LINK_PROGRAM = $(LINK)
LINK = $(CC)
LINK_LLVM = $(LLVM_SHARED)
endif
LIBS = $(LIBLZMA) -ldl -lm -lpthread $(SAN_FLAGS)

LIB_SRC = $(filter-out compiler/cli/% runtime/aot/rt_devices.c,$(wildcard compiler/*/*.c compiler/*/*/*.c lang/*.c runtime/*/*.c))
GEN_SRC = $(BUILD)/gen/parser.c $(BUILD)/gen/lex.yy.c $(BUILD)/gen/ptx_parser.c $(BUILD)/gen/ptx_lex.c
COMPILER_OBJ = $(LIB_SRC:%.c=$(BUILD)/obj/%.o) $(GEN_SRC:$(BUILD)/gen/%.c=$(BUILD)/obj/gen/%.o) $(BUILD)/obj/gen/embed.o
LIB_OBJ = $(COMPILER_OBJ) $(BUILD)/obj/gen/identity.o
TLC_SRC = $(wildcard compiler/cli/*.c)
TLC_OBJ = $(TLC_SRC:%.c=$(BUILD)/obj/%.o)

all: $(BUILD)/tlc $(BUILD)/libtl.a $(BUILD)/libtl.so $(BUILD)/libtlrt.a

# --- what the build needs --------------------------------------------------------------------------------------

# Installs Debian packages when a tool is missing; everything below waits for it. Tests and packages need more.
$(BUILD)/deps: NEEDS = $(if $(STATIC),static,build)
$(BUILD)/deps-test: NEEDS = test
$(BUILD)/deps-package: NEEDS = package
$(BUILD)/deps $(BUILD)/deps-test $(BUILD)/deps-package: .ci/install-deps.sh
	@mkdir -p $(BUILD)/gen
	sh .ci/install-deps.sh $(NEEDS)
	@touch $@

# --- generated sources -----------------------------------------------------------------------------------------

$(BUILD)/gen/parser.c: lang/parser.y $(BUILD)/deps
	$(call say,BISON,$<)
	$(Q)bison -Wall -Wno-other -o $@ --header=$(BUILD)/gen/parser.h $<
$(BUILD)/gen/parser.h: $(BUILD)/gen/parser.c ;
$(BUILD)/gen/lex.yy.c: lang/lexer.l $(BUILD)/deps
	$(call say,FLEX,$<)
	$(Q)flex -o $@ $<

$(BUILD)/gen/ptx_parser.c: runtime/sim/ptx.y $(BUILD)/deps
	$(call say,BISON,$<)
	$(Q)bison -Wall -Wno-other -o $@ --header=$(BUILD)/gen/ptx_parser.h $<
$(BUILD)/gen/ptx_parser.h: $(BUILD)/gen/ptx_parser.c ;
$(BUILD)/gen/ptx_lex.c: runtime/sim/ptx.l $(BUILD)/deps | $(BUILD)/gen/ptx_parser.h
	$(call say,FLEX,$<)
	$(Q)flex -o $@ $<

# The standard library and the math functions of libclc, inside the binary.
STD = $(patsubst lang/%,$(BUILD)/gen/%,lang/std/core.tl $(filter-out lang/std/core.tl,$(sort $(wildcard lang/std/*.tl))))
$(BUILD)/gen/std/%.tl: lang/std/%.tl lang/std/expand.awk
	@mkdir -p $(@D)
	$(Q)awk -f lang/std/expand.awk $< > $@.new
	$(Q)mv $@.new $@
# Only the functions the code generator calls, already reduced to one small module.
CLC = /usr/lib/clc/nvptx64--nvidiacl.bc
CLC_FUNCS = _Z3sind _Z3cosd _Z4fmodff _Z4fmoddd
$(BUILD)/gen/math.bc: $(BUILD)/deps
	$(call say,EXTRACT,$@)
	$(Q)llvm-extract-19 --recursive --rglob='.*' $(CLC_FUNCS:%=--func=%) $(CLC) -o $@.tmp
	$(Q)opt-19 -passes='internalize,globaldce,strip' -internalize-public-api-list=$(subst $(eval) ,$(,),$(strip $(CLC_FUNCS))) $@.tmp -o $@
	@rm -f $@.tmp
$(BUILD)/gen/embed.S: $(STD) $(BUILD)/gen/math.bc
	$(Q)printf '%s\n' '.section .rodata' '.globl embed_std, embed_std_end, embed_math, embed_math_end' \
		'.hidden embed_std, embed_std_end, embed_math, embed_math_end' \
		'embed_std:' $(STD:%='.incbin "%"' '.byte 0') 'embed_std_end: .balign 16' \
		'embed_math: .incbin "$(BUILD)/gen/math.bc"' 'embed_math_end: .byte 0' \
		'.section .note.GNU-stack,"",@progbits' > $@

# A hash of all that compiles: the same in tlc, in libtl and in programs that it is part of.
$(BUILD)/gen/identity.S: $(COMPILER_OBJ)
	$(Q)printf '%s\n' '.section .rodata' '.globl compiler_identity' '.hidden compiler_identity' \
		"compiler_identity: .asciz \"`{ cat $^; $(LLVM_CONFIG) --version; } | sha256sum | cut -c 1-64`\"" \
		'.section .note.GNU-stack,"",@progbits' > $@

# --- objects ---------------------------------------------------------------------------------------------------

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.S
	@mkdir -p $(@D)
	$(Q)$(CC) -c $< -o $@
$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c | $(BUILD)/gen/parser.h $(BUILD)/gen/ptx_parser.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS) -Wno-sign-compare -Wno-unused-but-set-variable -c $< -o $@
# whole-tile loops: worth the vectoriser
$(BUILD)/obj/compiler/interp/%.o $(BUILD)/obj/runtime/sim/%.o $(BUILD)/obj/runtime/device/cpu_check.o: OPT = -O3 -fno-math-errno -fno-trapping-math
$(BUILD)/obj/%.o: %.c | $(BUILD)/gen/parser.h $(BUILD)/deps
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS) -c $< -o $@

# --- products --------------------------------------------------------------------------------------------------

$(BUILD)/libtl.so: $(LIB_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=runtime/libtl.map -o $@ $^ $(LINK_LLVM) $(LIBS)
	@ln -sf libtl.so $(BUILD)/$(SONAME)
$(BUILD)/tlc: $(TLC_OBJ) $(LIB_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK_PROGRAM) -o $@ $^ $(LINK_LLVM) $(LIBS)
archive = $(Q)OBJ='$(BUILD)/obj' CC='$(CC)' EXPORT_TL='$(EXPORT_TL)' sh .ci/archive.sh $@
$(BUILD)/libtl.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(archive) '' $^

# What kernels compiled ahead of time need: no compiler, no LLVM.
RT_SRC = $(filter-out compiler/support/diag.c,$(wildcard compiler/support/*.c runtime/api/*.c runtime/image/*.c \
	runtime/device/*.c runtime/aot/*.c))
$(BUILD)/libtlrt.a: $(RT_SRC:%.c=$(BUILD)/obj/%.o)
	$(call say,AR,$@)
	$(archive) '--strip-debug --wildcard -L lzma_*' $^ `$(CC) -print-file-name=liblzma.a`

# --- examples --------------------------------------------------------------------------------------------------

EXAMPLES = vector_add softmax matmul mean layer_norm attention attention_bias
# As a user builds them: the header, the library, nothing else.
$(BUILD)/examples/%: examples/%.c examples/common.c examples/common.h runtime/tl.h $(BUILD)/libtl.so
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=c11 -O3 -g $(WARN) $(SAN_FLAGS) -Iruntime -o $@ $< examples/common.c -L$(BUILD) -ltl \
		-Wl,-rpath,'$$ORIGIN/..' -lm

# A transformer, trained and sampled.
GPT_SRC = $(filter-out %/compiled.c,$(wildcard examples/gpt/*.c))
GPT_FLAGS = -std=c11 -D_GNU_SOURCE -O3 -g $(WARN) $(SAN_FLAGS) -Iruntime
$(BUILD)/gpt: $(GPT_SRC) $(wildcard examples/gpt/*.h) runtime/tl.h $(BUILD)/libtl.so
	$(call say,CC,examples/gpt)
	$(Q)$(CC) $(GPT_FLAGS) -o $@ $(GPT_SRC) -L$(BUILD) -ltl -Wl,-rpath,'$$ORIGIN' -lm

# For several processes: mpirun -n 4 build/gpt-mpi train TEXT
$(BUILD)/gpt-mpi: $(GPT_SRC) $(wildcard examples/gpt/*.h) runtime/tl.h $(BUILD)/libtl.so
	$(call say,MPICC,examples/gpt)
	$(Q)mpicc $(GPT_FLAGS) -DWITH_MPI -o $@ $(GPT_SRC) -L$(BUILD) -ltl -Wl,-rpath,'$$ORIGIN' -lm

# The same without compiler and LLVM, for models of these sizes: build/gpt-aot/gpt
GPT_MODEL = --channels 128 --heads 4 --context 64
$(BUILD)/gpt-aot/gpt: examples/gpt/ahead.sh $(wildcard examples/gpt/*) $(BUILD)/tlc $(BUILD)/gpt $(BUILD)/libtlrt.a
	$(call say,AOT,examples/gpt)
	$(Q)CC='$(CC) $(GPT_FLAGS)' sh examples/gpt/ahead.sh $(BUILD) $(GPT_MODEL)

# DEMO='--device interp' chooses another device
demo: $(BUILD)/tlc $(EXAMPLES:%=$(BUILD)/examples/%) $(BUILD)/gpt
	$(Q)DEMO='$(DEMO)' GPT=$(BUILD)/gpt sh examples/demo.sh $(EXAMPLES:%=$(BUILD)/examples/%)

include tests/tests.mk
include runtime/python/python.mk

# --- checks of the source --------------------------------------------------------------------------------------

deps:
	$(Q)sh .ci/check-includes.sh
	$(Q)sh .ci/check-lines.sh
	$(Q)sh .ci/check-tree.sh
	$(Q)sh .ci/check-planted.sh
	$(Q)sh .ci/check-order.sh

# the parameters in the reference of built-in functions
docs: $(BUILD)/tlc
	$(Q)sh docs/builtins.sh $(BUILD) --write

# clang-tidy-19, with .clang-tidy
tidy: $(BUILD)/gen/parser.h
	$(Q)printf '%s\n' $(LIB_SRC) $(TLC_SRC) $(wildcard examples/*.c) | xargs -P2 -I{} nice clang-tidy-19 -quiet {} -- \
		-std=c11 -D_GNU_SOURCE -Icompiler -I. -Iruntime -I$(BUILD)/gen -isystem $(LLVM_INCLUDE)

# --- fuzzing ---------------------------------------------------------------------------------------------------

FUZZ_OBJ = $(filter-out $(BUILD)/obj/compiler/interp/% $(BUILD)/obj/runtime/% $(BUILD)/obj/gen/ptx_%,$(COMPILER_OBJ)) $(BUILD)/obj/tests/fuzz/fuzz.o
$(BUILD)/fuzz: $(FUZZ_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) -fsanitize=fuzzer,address,undefined -o $@ $^ $(LLVM_SHARED) -ldl -lm -lpthread
# the simulator's reader of PTX, which needs no LLVM
FUZZ_PTX_OBJ = $(filter $(BUILD)/obj/runtime/sim/% $(BUILD)/obj/compiler/support/% $(BUILD)/obj/gen/ptx_%,$(COMPILER_OBJ)) $(BUILD)/obj/tests/fuzz/ptx.o
$(BUILD)/fuzz-ptx: $(FUZZ_PTX_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) -fsanitize=fuzzer,address,undefined -o $@ $^ -lm -lpthread
# what the library opens: images, entries of the disk cache, manifests and tunings, .npy
FUZZ_FILES = $(BUILD)/fuzz-image $(BUILD)/fuzz-entry $(BUILD)/fuzz-lines $(BUILD)/fuzz-npy
$(FUZZ_FILES): $(BUILD)/fuzz-%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/inside.a
	$(call say,LINK,$@)
	$(Q)$(CC) -fsanitize=fuzzer,address,undefined -o $@ $^ $(LLVM_SHARED) -llzma -ldl -lm -lpthread
# needs clang-19 and libclang-rt-19-dev
fuzz:
	$(Q)$(MAKE) BUILD=$(BUILD)-fuzz CC=clang-19 OPT='-O1 -Wno-unused-command-line-argument' \
		SAN_FLAGS='-fsanitize=fuzzer-no-link$(,)address$(,)undefined -fno-sanitize-recover=undefined -Wno-missing-field-initializers -Wno-c23-extensions $(PATTERN)' \
		$(addprefix $(BUILD)-fuzz/,fuzz fuzz-ptx fuzz-image fuzz-entry fuzz-lines fuzz-npy)

# --- installing ------------------------------------------------------------------------------------------------

# Manual pages and completions are made from `tlc --help` and tl.h. TLC runs it.
TLC ?= $(BUILD)/tlc
COMMANDS = run bench tune list show cache build serve
MAN3 := $(patsubst %,man/man3/%.3,$(shell sh docs/install/tl.3.sh runtime/tl.h))
SHARE = man/man1/tlc.1 $(COMMANDS:%=man/man1/tlc-%.1) $(MAN3) bash-completion/completions/tlc zsh/$(ZSH)/_tlc \
	fish/vendor_completions.d/tlc.fish doc/tlc/LICENSE doc/tlc/NOTICES
ZSH ?= site-functions
$(BUILD)/share/man/man1/tlc.1 $(COMMANDS:%=$(BUILD)/share/man/man1/tlc-%.1): docs/install/tlc.1.sh $(BUILD)/tlc
	@mkdir -p $(@D)
	$(Q)sh $< '$(TLC)' $(VERSION) $(patsubst tlc-%,%,$(filter-out tlc,$(basename $(@F)))) > $@
$(MAN3:%=$(BUILD)/share/%) &: docs/install/tl.3.sh runtime/tl.h
	@mkdir -p $(BUILD)/share/man/man3
	$(Q)sh $^ $(BUILD)/share/man/man3
$(BUILD)/share/bash-completion/completions/tlc: COMPLETES = bash
$(BUILD)/share/zsh/$(ZSH)/_tlc: COMPLETES = zsh
$(BUILD)/share/fish/vendor_completions.d/tlc.fish: COMPLETES = fish
$(filter-out %.1 %.3 $(BUILD)/share/doc/%,$(SHARE:%=$(BUILD)/share/%)): docs/install/completion.sh $(BUILD)/tlc
	@mkdir -p $(@D)
	$(Q)sh $< '$(TLC)' $(COMPLETES) > $@
$(BUILD)/share/doc/tlc/LICENSE: LICENSE
	@mkdir -p $(@D)
	$(Q)cp $< $@
# of libraries that are inside (with STATIC=1 LLVM and the C++ library, too), or loaded with tlc and libtl
LINKED = llvm-19-dev libclc-19 libxxhash-dev liblzma-dev zlib1g libzstd1
$(BUILD)/share/doc/tlc/NOTICES: docs/install/notices.sh $(BUILD)/deps
	@mkdir -p $(@D)
	$(Q)sh $< $(LINKED) > $@

$(BUILD)/install/libtl.pc: ABOUT = Triton kernels for C programs
$(BUILD)/install/libtlrt.pc: ABOUT = launcher of Triton kernels that were compiled ahead of time
$(BUILD)/install/libtl.pc: LINKS = 'Libs: -L$${libdir} -ltl' 'Libs.private: $(LLVM_SHARED) $(LIBS)'
$(BUILD)/install/libtlrt.pc: LINKS = 'Libs: -L$${libdir} -ltlrt -lpthread -ldl $(SAN_FLAGS)'
# made for each PREFIX and LIBDIR
.PHONY: $(BUILD)/install/libtl.pc $(BUILD)/install/libtlrt.pc
$(BUILD)/install/libtl.pc $(BUILD)/install/libtlrt.pc:
	@mkdir -p $(@D)
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)' 'includedir=$${prefix}/include' '' \
		'Name: $(basename $(@F))' 'Description: $(ABOUT)' 'Version: $(VERSION)' 'Cflags: -I$${includedir}' $(LINKS) > $@
$(BUILD)/install/libtl-config-version.cmake: runtime/aot/libtl-config-version.cmake.in runtime/tl.h
	@mkdir -p $(@D)
	$(Q)sed 's/@VERSION@/$(VERSION)/; s/@NUMBER@/$(SONAME:libtl.so.%=%)/' $< > $@

INSTALL = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' SHARE='$(SHARE)' sh .ci/install.sh
# the loader finds libraries under /usr/local by its cache
LDCONFIG = $(if $(DESTDIR),,$(if $(filter /usr /usr/local,$(PREFIX)),-ldconfig))
install: all $(SHARE:%=$(BUILD)/share/%) $(addprefix $(BUILD)/install/,libtl.pc libtlrt.pc libtl-config-version.cmake)
	$(Q)$(INSTALL) install $(BUILD) $(VERSION) $(SONAME)
	$(LDCONFIG)
uninstall:
	$(Q)$(INSTALL) uninstall $(BUILD) $(VERSION) $(SONAME)
	$(LDCONFIG)

CROSS ?= build-arm64
# Debian packages of what is here: tlc, libtl0 and libtl-dev, in $(BUILD)/deb
ifneq ($(and $(filter arm64,$(ARCH)),$(filter-out $(CROSS),$(BUILD))),)
deb: cross-deb
else
deb: all $(BUILD)/deps-package
	+$(Q)MAKE='$(MAKE)' CC='$(CC)' ARCH='$(ARCH)' TLC='$(TLC)' sh docs/install/deb.sh $(BUILD) $(VERSION)
endif

# --- for arm64 -------------------------------------------------------------------------------------------------

# The tree built for arm64 on another machine; GOAL names what is made there. $(CROSS)/emulate PROGRAM… runs it by qemu.
GOAL ?= all
CROSS_MAKE = $(MAKE) BUILD=$(CROSS) CC=$(CROSS)/cc CXX=$(CROSS)/c++ ARCH=arm64 EMULATE=$(CROSS)/emulate TLC='$(CROSS)/emulate $(CROSS)/tlc'
cross: $(CROSS)/deps-cross
	sh .ci/cross.sh $(CROSS) $(if $(filter wheel test-python,$(GOAL)),python)
	+$(Q)$(CROSS_MAKE) $(GOAL)
cross-deb: GOAL = deb
cross-deb: cross
$(CROSS)/deps-cross: .ci/install-deps.sh
	@mkdir -p $(@D)
	sh .ci/install-deps.sh cross
	@touch $@

clean:
	rm -rf $(BUILD)

-include $(LIB_OBJ:.o=.d) $(RT_SRC:%.c=$(BUILD)/obj/%.d) $(TLC_OBJ:.o=.d) $(wildcard $(BUILD)/obj/tests/fuzz/*.d)
# make fuzz: see tests/fuzz/fuzz.c
.PHONY: all deps docs tidy fuzz install uninstall deb cross cross-deb clean demo test test-all test-share test-planted test-programs test-cross test-package test-threads test-gpu test-articles test-triton test-triton-suite test-torch gpu-kit

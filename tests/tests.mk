# The tests. `make test TESTS=tests/lit/transform` runs the lit tests of one folder or file only.

include tests/run/run.mk

# Tests of the inside link with the objects; what a test defines itself takes the place of the archive's.
$(BUILD)/obj/inside.a: $(LIB_OBJ) $(addprefix $(BUILD)/obj/compiler/cli/,c_names.o npy.o)
	$(Q)rm -f $@
	$(Q)ar rcsT $@ $^
$(BUILD)/tests/%: tests/unit/%.c $(BUILD)/obj/inside.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -fPIE -c $< -o $(BUILD)/obj/$*.o
	$(Q)$(LINK) -o $@ $(BUILD)/obj/$*.o $(BUILD)/obj/inside.a $(WRAP:%=-Wl,--wrap=%) -lcmocka $(LINK_LLVM) $(LIBS)
$(BUILD)/tests/test_host_math: LIBS += -lmpfr
$(BUILD)/tests/test_memory: WRAP = malloc calloc realloc aligned_alloc strdup free
# A profiler's library, for ranges.
$(BUILD)/tests/nvtx-tool.so: tests/unit/nvtx_tool.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -O2 -g $(WARN) -shared -fPIC -o $@ $<
$(BUILD)/tests/test_nvtx: $(BUILD)/tests/nvtx-tool.so
# It finds the functions of the library by name.
$(BUILD)/tests/test_foreign: $(BUILD)/libtl.so
# It runs `tlc build`.
$(BUILD)/tests/test_sources: $(BUILD)/tlc
UNIT = $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(filter-out %_gpu.c,$(wildcard tests/unit/test_*.c)))

# Planted faults: mutants of the PTX of real kernels, which the simulator must report.
# What an H100 answered to each form of each instruction, against the simulator.
SIM_TESTS = $(BUILD)/tests/mutants $(BUILD)/tests/isa
MUTANTS_SRC = $(wildcard tests/sim/mutants*.c)
$(BUILD)/obj/tests/sim/mutants.o: CFLAGS += -fopenmp
$(BUILD)/tests/mutants: LIBS += -fopenmp
$(BUILD)/tests/mutants: $(MUTANTS_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/inside.a
$(BUILD)/tests/isa: $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(MUTANTS_SRC),$(wildcard tests/sim/*.c))) $(BUILD)/obj/inside.a
$(SIM_TESTS):
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $^ $(LINK_LLVM) $(LIBS)

# What `tlc build` makes of names, for tests/names.sh
$(BUILD)/tests/names: $(BUILD)/obj/tests/aot/names.o $(BUILD)/obj/inside.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $^ $(LINK_LLVM) $(LIBS)

# A CUDA driver made of the simulator: LD_LIBRARY_PATH=build/simcuda
$(BUILD)/simcuda/libcuda.so.1: $(BUILD)/obj/tests/simcuda/simcuda.o $(BUILD)/obj/inside.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)echo '{ global: cu*; local: *; };' > $(BUILD)/obj/simcuda.map
	$(Q)$(CC) -shared -Wl,--no-undefined -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(BUILD)/obj/simcuda.map -o $@ $^ $(LIBS)

# Tile registers for processors that have none: LD_PRELOAD=build/tests/libamx.so
AMX = $(BUILD)/tests/libamx.so
$(AMX): tests/amx/model.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O2 -g $(WARN) -ffp-contract=off -fPIC -shared -o $@ $< -ldl -lm

# The compiler as another C compiler builds it, without optimisation: tests/compilers.sh compares the PTX of both.
OTHER_CC = $(if $(findstring clang,$(CC)),gcc,clang-19)
OTHER_OBJ = $(filter-out $(BUILD)/obj/compiler/interp/%,$(filter $(BUILD)/obj/compiler/%,$(COMPILER_OBJ) $(TLC_OBJ)))
$(BUILD)/other/%.o: %.c | $(BUILD)/gen/parser.h $(BUILD)/deps-test
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(OTHER_CC) -std=c11 -D_GNU_SOURCE -O0 -w -fPIC -Icompiler -I. -I$(BUILD)/gen -isystem $(LLVM_INCLUDE) -MMD -MP -c $< -o $@
$(BUILD)/other/tlc: $(OTHER_OBJ:$(BUILD)/obj/%=$(BUILD)/other/%) $(filter-out $(OTHER_OBJ),$(TLC_OBJ) $(LIB_OBJ))
	$(call say,LINK,$@)
	$(Q)$(LINK_PROGRAM) -o $@ $^ $(LINK_LLVM) $(LIBS)
-include $(OTHER_OBJ:$(BUILD)/obj/%.o=$(BUILD)/other/%.d)

# The disk cache under stress; cache-stress --full is what it must stand, and takes minutes.
STRESS_WRAP = compile write time
$(BUILD)/tests/cache-stress: $(BUILD)/obj/tests/stress/cache.o $(BUILD)/obj/inside.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $^ $(STRESS_WRAP:%=-Wl,--wrap=%) $(LINK_LLVM) $(LIBS)

# LLVM is not made with the sanitizer: tests/tsan.supp is what that makes of it.
THREAD_TESTS = test_cache test_interp test_runtime test_runtime_cuda test_runtime_embed test_runtime_launch test_runtime_variants \
	test_threads test_waits
ifeq ($(SAN),thread)
test-threads: $(THREAD_TESTS:%=$(BUILD)/tests/%) $(BUILD)/tests/cache-stress $(BUILD)/tests/test_gpt
	$(Q)sh tests/threads.sh $(filter $(BUILD)/tests/%,$^)
else
test-threads:
	$(Q)$(MAKE) SAN=thread BUILD=$(BUILD)-threads test-threads
endif

EXAMPLE_PROGRAMS = $(EXAMPLES:%=$(BUILD)/examples/%)
# Copies between two devices: of the GPUs, or of two contexts of another kind.
$(BUILD)/tests/test_two_gpus: tests/gpus/test_two_gpus.c runtime/tl.h $(BUILD)/libtl.so
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O2 -g $(WARN) $(SAN_FLAGS) -Iruntime -o $@ $< -L$(BUILD) -ltl -Wl,-rpath,'$$ORIGIN/..'

# The model of examples/gpt against double precision, and its tokenizer.
GPT_TESTS = $(BUILD)/tests/test_gpt $(BUILD)/tests/gpt_tokens
$(BUILD)/tests/test_gpt: tests/gpt/test_gpt.c examples/gpt/model.c examples/gpt/graph.c examples/gpt/kernels.c examples/gpt/jit.c
$(BUILD)/tests/gpt_tokens: tests/gpt/tokens.c examples/gpt/tokenizer.c examples/gpt/json.c examples/gpt/model.c examples/gpt/graph.c examples/gpt/kernels.c examples/gpt/jit.c
$(GPT_TESTS): $(wildcard examples/gpt/*.h) runtime/tl.h $(BUILD)/libtl.so
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(GPT_FLAGS) -I. -o $@ $(filter %.c,$^) -L$(BUILD) -ltl -Wl,-rpath,'$$ORIGIN/..' -lm

CORE_PROGRAMS = $(BUILD)/simcuda/libcuda.so.1 $(AMX) $(UNIT) $(SIM_TESTS) $(BUILD)/tests/cache-stress $(BUILD)/test-run \
	$(BUILD)/test-random $(BUILD)/checked/test-random $(EXAMPLE_PROGRAMS) $(BUILD)/tests/test_two_gpus $(GPT_TESTS)
TEST_PROGRAMS = $(CORE_PROGRAMS) $(BUILD)/other/tlc $(BUILD)/tests/names $(BUILD)/gpt $(BUILD)/gpt-mpi
$(TEST_PROGRAMS): | $(BUILD)/deps-test
LIT = python3 /usr/lib/llvm-19/build/utils/lit/lit.py

ifdef TESTS
test: $(BUILD)/tlc $(BUILD)/deps-test
	$(Q)$(LIT) -v --param build=$(BUILD) $(TESTS)
else
test: all $(CORE_PROGRAMS)
	$(Q)LIT='$(LIT)' sh tests/test.sh $(BUILD) core $(UNIT)
test-programs: all $(TEST_PROGRAMS)
test-all: test-programs
	$(Q)LIT='$(LIT)' sh tests/test.sh $(BUILD) all $(UNIT)
test-share: test-programs
	$(Q)LIT='$(LIT)' sh tests/test.sh $(BUILD) share $(UNIT)
endif

# Ten planted faults, which the suites of `make test` must find; all of them: python3 tests/planted/run.py build
test-planted: $(BUILD)/tlc $(BUILD)/libtl.so $(BUILD)/test-run $(BUILD)/test-random $(AMX)
	+$(Q)CC='$(CC)' python3 tests/planted/run.py $(BUILD) --pick 10 --jobs $(shell nproc)

# The tree for arm64, by qemu; without Debian's packages for that it says so and tests nothing.
test-cross: $(BUILD)/tlc
	+$(Q)MAKE='$(MAKE)' sh tests/cross.sh $(BUILD) $(CROSS)

# The Debian packages in a clean root; where that cannot be made it says so and tests nothing.
test-package: all $(BUILD)/deps-package
	+$(Q)MAKE='$(MAKE)' sh tests/package.sh $(BUILD)

$(BUILD)/articles-test: tests/articles/articles.c runtime/tl.h $(BUILD)/libtl.so
	$(call say,CC,$<)
	$(Q)$(CC) -std=c11 -O2 -g $(WARN) $(SAN_FLAGS) -Iruntime -o $@ $< -L$(BUILD) -ltl -Wl,-rpath,'$$ORIGIN' -lm
# ARTICLES=DIR holds the articles' texts
test-articles: $(BUILD)/tlc $(BUILD)/articles-test
	$(Q)sh tests/articles/run.sh $(ARTICLES) $(BUILD)

# PY is a Python with the package triton, of which N variants of each kernel are exchanged
N = 2
PY = python3
test-triton: $(BUILD)/tlc $(BUILD)/test-run
	$(Q)sh tests/triton/run.sh $(BUILD) $(PY) $(N)

# PY is a Python with PyTorch
test-torch: python
	+$(Q)set -e; for t in tests/python/test_torch_*.py; do PYTHONPATH=$(BUILD)/python $(PY) -W ignore $$t; done

# Triton's own tests with the Python package; CHECKOUT is a checkout of Triton, PY a Python with torch and pytest-timeout
test-triton-suite: python
	$(Q)PYTHON=$(PY) BUILD=$(BUILD) sh tests/python/triton-tests/run.sh $(CHECKOUT)
	$(Q)$(PY) tests/python/triton-tests/report.py $(BUILD)/triton-tests/log.jsonl

# What a launch costs, and a second process: tests/bench/launch.c and start.c say how they are called.
BENCH_PROGRAMS = $(BUILD)/tests/launch $(BUILD)/tests/start
$(BENCH_PROGRAMS): $(BUILD)/tests/%: $(BUILD)/obj/tests/bench/%.o $(BUILD)/obj/inside.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $^ $(LINK_LLVM) $(LIBS)
-include $(BENCH_PROGRAMS:$(BUILD)/tests/%=$(BUILD)/obj/tests/bench/%.d)

GPU_PROGRAMS = $(BUILD)/tests/test_runtime_gpu $(BUILD)/tests/test_tune_helper $(BENCH_PROGRAMS) $(BUILD)/test-run $(BUILD)/test-random $(EXAMPLE_PROGRAMS) $(BUILD)/tests/test_gpt $(BUILD)/gpt $(BUILD)/tests/test_two_gpus
test-gpu: all $(GPU_PROGRAMS)
	$(Q)sh tests/gpu.sh $(BUILD)

# One file of 12 MB with all that tests/gpu.sh needs, for a machine with a GPU and a copy of this tree but without LLVM:
#   mkdir kit && tar -xJf gpu-kit.tar.xz -C kit && sh tests/gpu.sh kit
gpu-kit:
	$(Q)$(MAKE) STATIC=1 BUILD=$(BUILD)-static $(BUILD)-static/gpu-kit.tar.xz
KIT_LIBS = libcmocka.so.0
$(BUILD)/gpu-kit.tar.xz: $(BUILD)/tlc $(BUILD)/libtl.so $(BUILD)/articles-test $(GPU_PROGRAMS)
	$(call say,PACK,$@)
	$(Q)mkdir -p $(BUILD)/lib
	$(Q)for f in $(KIT_LIBS); do cp -L `$(CC) -print-file-name=$$f` $(BUILD)/lib; done
	$(Q)tar -C $(BUILD) -c $(^:$(BUILD)/%=%) $(SONAME) lib | xz -T0 --lzma2=preset=3,dict=128MiB > $@
-include $(patsubst %.c,$(BUILD)/obj/%.d,$(wildcard tests/sim/*.c tests/simcuda/*.c tests/stress/*.c tests/aot/names.c))

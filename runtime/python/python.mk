# The Python package libtl.
#
# make python       the package in $(BUILD)/python, with LLVM's shared library: PYTHONPATH=build/python python3 -c 'import libtl'
# make wheel        $(BUILD)/wheel/libtl-*.whl, with LLVM inside; its objects are in $(BUILD)-static
# make test-python  the tests of the package, in an environment with the wheel; TREE=1: of the package in $(BUILD)/python

# Its headers are used. The extension keeps to the stable ABI of Python 3.10, so one build serves the later versions, too.
PYTHON ?= python3
PYTHON_INCLUDE = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')
PACKAGE = $(BUILD)/python/libtl
PYTHON_SRC = $(patsubst runtime/python/libtl/%,%,$(shell find runtime/python/libtl -name '*.py' -o -name '*.pyi' -o -name py.typed))
LANGUAGE = $(addprefix language/,_builtins.py _inductor.py target_info.py extra/libdevice.py extra/cuda/_functions.py)
PYTHON_FILES = $(addprefix $(PACKAGE)/,libtl-python.so _core.abi3.so tlc $(LANGUAGE) $(PYTHON_SRC))
CORE_OBJ = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard runtime/python/core/*.c))
CLI_OBJ = $(filter-out %/program.o,$(TLC_OBJ))

python: $(PYTHON_FILES)
	@find $(PACKAGE) -xtype l -delete

$(BUILD)/deps-python: NEEDS = python
$(BUILD)/deps-python: .ci/install-deps.sh
	@mkdir -p $(BUILD)
	sh .ci/install-deps.sh $(NEEDS)
	@touch $@

# libtl with the commands of tlc, which the package's program tlc calls. The name is the package's own: neither
# LD_LIBRARY_PATH nor a library that the process has loaded takes its place. libgcc is glibc's dependency too; a copy
# inside would need glibc 2.35.
PYTHON_LIB_OBJ = $(LIB_OBJ) $(CLI_OBJ) $(BUILD)/obj/runtime/python/glibc/arc4random.o
$(PACKAGE)/libtl-python.so: $(PYTHON_LIB_OBJ) runtime/python/libtl.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(filter-out -static-libgcc,$(LINK)) -shared -Wl,-soname,$(@F) -Wl,--version-script=$(filter %.map,$^) -Wl,--as-needed \
		-Wl,--trace -o $@ $(filter %.o,$^) $(LINK_LLVM) $(LIBS) > $(BUILD)/python/inside
LINK_PACKAGE = $(CC) $(if $(STATIC),-Wl$(,)-s) -Wl,-rpath,'$$ORIGIN' $(SAN_FLAGS)
$(CORE_OBJ): CFLAGS += -isystem $(PYTHON_INCLUDE)
$(CORE_OBJ): | $(BUILD)/deps-python
$(PACKAGE)/_core.abi3.so: $(CORE_OBJ) runtime/python/python.mk | $(PACKAGE)/libtl-python.so
	$(call say,LINK,$@)
	$(Q)$(LINK_PACKAGE) -shared -o $@ $(filter %.o,$^) $(PACKAGE)/libtl-python.so
$(PACKAGE)/tlc: $(BUILD)/obj/compiler/cli/program.o runtime/python/python.mk | $(PACKAGE)/libtl-python.so
	$(call say,LINK,$@)
	$(Q)$(LINK_PACKAGE) -o $@ $(filter %.o,$^) $(PACKAGE)/libtl-python.so
# the functions of the language, with their parameters
$(addprefix $(PACKAGE)/,$(LANGUAGE)) &: runtime/python/make_language.py $(BUILD)/tlc
	$(call say,PYTHON,$(PACKAGE)/language)
	$(Q)$(PYTHON) $< $(PACKAGE)/language $(TLC)
# an edited file is there at once
$(addprefix $(PACKAGE)/,$(PYTHON_SRC)): $(PACKAGE)/%: | runtime/python/libtl/%
	@mkdir -p $(@D)
	$(Q)ln -sfn $(CURDIR)/runtime/python/libtl/$* $@

# --- the wheel -------------------------------------------------------------------------------------------------

WHEEL = $(BUILD)/wheel/made
ifdef STATIC
# what is inside libtl-python.so; tests/python/wheel.py compares this list with what was linked
INSIDE = llvm-19-dev libclc-19 libxxhash-dev liblzma-dev zlib1g-dev libzstd-dev libstdc++-12-dev
$(BUILD)/python/NOTICES: docs/install/notices.sh runtime/python/python.mk $(BUILD)/deps
	@mkdir -p $(@D)
	$(Q)STRICT=1 sh $< $(INSIDE) > $@
# the folders, too: a file that is no longer there
$(WHEEL): $(PYTHON_FILES) $(sort $(dir $(PYTHON_SRC:%=runtime/python/libtl/%))) runtime/python/make_wheel.py \
		runtime/python/METADATA LICENSE $(BUILD)/python/NOTICES
	$(call say,PACK,$(@D))
	@rm -rf $(@D) && mkdir -p $(@D)
	$(Q)$(PYTHON) runtime/python/make_wheel.py $(@D) $(VERSION) $(BUILD)/python $(PYTHON_FILES) \
		--licenses LICENSE $(BUILD)/python/NOTICES
	@touch $@
wheel: $(WHEEL)
else
# $(TLC), which lists the builtins for it, is this build's own when it is emulated
wheel: $(if $(EMULATE),$(BUILD)/tlc)
	+$(Q)$(MAKE) STATIC=1 BUILD=$(BUILD)-static wheel
	@rm -rf $(BUILD)/wheel && mkdir -p $(BUILD)/wheel
	$(Q)cp $(BUILD)-static/wheel/*.whl $(BUILD)/wheel
endif

# --- its tests -------------------------------------------------------------------------------------------------

# make cross GOAL=test-python: of the wheel for arm64
test-python: $(if $(TREE),python,wheel) $(BUILD)/tlc
	$(Q)PYTHON='$(PYTHON)' sh tests/python.sh $(BUILD) $(if $(filter arm64,$(ARCH)),emulated,$(if $(TREE),tree))

-include $(CORE_OBJ:.o=.d) $(BUILD)/obj/runtime/python/glibc/arc4random.d
.PHONY: python wheel test-python

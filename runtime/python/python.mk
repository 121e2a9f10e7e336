# The Python package libtl.
#
# make python        the package in $(BUILD)/python, with LLVM loaded: PYTHONPATH=build/python python3 -c 'import libtl'

# its headers; the extension keeps to the stable ABI of Python 3.10, so one build serves all later versions
PYTHON ?= python3
PYTHON_INCLUDE = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')
PACKAGE = $(BUILD)/python/libtl
PYTHON_SRC = $(patsubst runtime/python/libtl/%,%,$(shell find runtime/python/libtl -name '*.py' -o -name '*.pyi' -o -name py.typed))
CORE_OBJ = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard runtime/python/core/*.c))
CLI_OBJ = $(filter-out %/program.o,$(TLC_OBJ))

python: $(addprefix $(PACKAGE)/,$(SONAME) _core.abi3.so tlc language/_builtins.py $(PYTHON_SRC))
	@find $(PACKAGE) -xtype l -delete

$(BUILD)/deps-python: NEEDS = python
$(BUILD)/deps-python: .ci/install-deps.sh
	@mkdir -p $(BUILD)
	sh .ci/install-deps.sh $(NEEDS)
	@touch $@

# libtl with the commands of tlc, of which the package's program tlc has the name only
$(PACKAGE)/$(SONAME): $(LIB_OBJ) $(CLI_OBJ) runtime/python/libtl.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=$(filter %.map,$^) -o $@ $(filter %.o,$^) $(LINK_LLVM) $(LIBS)
$(CORE_OBJ): CFLAGS += -isystem $(PYTHON_INCLUDE)
$(CORE_OBJ): | $(BUILD)/deps-python
$(PACKAGE)/_core.abi3.so: $(CORE_OBJ) | $(PACKAGE)/$(SONAME)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(if $(STATIC),-Wl$(,)-s) -o $@ $^ $(PACKAGE)/$(SONAME) -Wl,-rpath,'$$ORIGIN' $(SAN_FLAGS)
$(PACKAGE)/tlc: $(BUILD)/obj/compiler/cli/program.o | $(PACKAGE)/$(SONAME)
	$(call say,LINK,$@)
	$(Q)$(CC) $(if $(STATIC),-Wl$(,)-s) -o $@ $^ $(PACKAGE)/$(SONAME) -Wl,-rpath,'$$ORIGIN' $(SAN_FLAGS)
# the functions of the language, with their parameters
$(PACKAGE)/language/_builtins.py: runtime/python/make_language.py $(BUILD)/tlc
	$(call say,PYTHON,$@)
	$(Q)$(PYTHON) $< $(BUILD)/tlc $(@D)
# an edited file is there at once
$(addprefix $(PACKAGE)/,$(PYTHON_SRC)): $(PACKAGE)/%: | runtime/python/libtl/%
	@mkdir -p $(@D)
	$(Q)ln -sfn $(CURDIR)/runtime/python/libtl/$* $@

-include $(CORE_OBJ:.o=.d)
.PHONY: python

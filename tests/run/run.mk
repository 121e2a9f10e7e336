# Kernels on every device against plain C references. The programs look for their kernels in tests/run, from where they
# are run, or in $TL_TESTS.
TEST_RUN_LIB = run array number pairs sources texts
TEST_RUN_SRC = $(TEST_RUN_LIB:%=tests/run/%.c) $(wildcard tests/run/test_*.c)
TEST_RANDOM_SRC = $(TEST_RUN_LIB:%=tests/run/%.c) $(wildcard tests/random/*.c)
TEST_RUN_FLAGS = -std=c11 -D_GNU_SOURCE -O2 -g $(WARN) $(SAN_FLAGS) -ffp-contract=off -Iruntime -DTESTS_ROOT='"tests/run"' \
	-MMD -MP
TEST_RUN_LINK = -L$(BUILD) -ltl -Wl,-rpath,'$$ORIGIN' -lm

# tests/run and tests/random
$(BUILD)/obj/tests/r%.o: tests/r%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(TEST_RUN_FLAGS) -c $< -o $@
$(BUILD)/test-run: $(TEST_RUN_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/libtl.so
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) -o $@ $(filter %.o,$^) $(TEST_RUN_LINK)
$(BUILD)/test-random: $(TEST_RANDOM_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/libtl.so
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) -o $@ $(filter %.o,$^) $(TEST_RUN_LINK)
# The same with the sanitizers in the code generator and the runtime of the processor.
CHECKED_SRC = $(wildcard compiler/cpu/*.c compiler/llvm/*.c runtime/device/*.c)
CHECKED_FLAGS = -O1 -fsanitize=address$(,)undefined -fno-sanitize-recover=undefined $(PATTERN)
$(BUILD)/checked/%.o: %.c | $(BUILD)/gen/parser.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS) $(CHECKED_FLAGS) -c $< -o $@
$(BUILD)/checked/libtl.so: $(CHECKED_SRC:%.c=$(BUILD)/checked/%.o) $(filter-out $(CHECKED_SRC:%.c=$(BUILD)/obj/%.o),$(LIB_OBJ))
	$(call say,LINK,$@)
	$(Q)$(LINK) -shared $(CHECKED_FLAGS) -Wl,-soname,$(SONAME) -Wl,--version-script=runtime/libtl.map -o $@ $^ $(LINK_LLVM) $(LIBS)
	@ln -sf libtl.so $(@D)/$(SONAME)
$(BUILD)/checked/test-random: $(TEST_RANDOM_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/checked/libtl.so
	$(call say,LINK,$@)
	$(Q)$(CC) $(CHECKED_FLAGS) -o $@ $(filter %.o,$^) -L$(@D) -ltl -Wl,-rpath,'$$ORIGIN' -lm
-include $(CHECKED_SRC:%.c=$(BUILD)/checked/%.d)
-include $(TEST_RUN_SRC:%.c=$(BUILD)/obj/%.d) $(TEST_RANDOM_SRC:%.c=$(BUILD)/obj/%.d)

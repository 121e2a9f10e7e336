# Kernels on every device against plain C references. The programs look for their kernels in tests/run, from where they
# are run, or in $TL_TESTS.
TEST_RUN_LIB = run array number sources texts
TEST_RUN_SRC = $(TEST_RUN_LIB:%=tests/run/%.c) $(wildcard tests/run/test_*.c)
TEST_RANDOM_SRC = $(TEST_RUN_LIB:%=tests/run/%.c) $(wildcard tests/run/random*.c)
TEST_RUN_FLAGS = -std=c11 -D_GNU_SOURCE -O2 -g $(WARN) $(SAN_FLAGS) -ffp-contract=off -Iruntime -DTESTS_ROOT='"tests/run"' \
	-MMD -MP
TEST_RUN_LINK = -L$(BUILD) -ltl -Wl,-rpath,'$$ORIGIN' -lm

$(BUILD)/obj/tests/run/%.o: tests/run/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(TEST_RUN_FLAGS) -c $< -o $@
$(BUILD)/test-run: $(TEST_RUN_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/libtl.so
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) -o $@ $(filter %.o,$^) $(TEST_RUN_LINK)
$(BUILD)/test-random: $(TEST_RANDOM_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/libtl.so
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) -o $@ $(filter %.o,$^) $(TEST_RUN_LINK)
-include $(TEST_RUN_SRC:%.c=$(BUILD)/obj/%.d) $(TEST_RANDOM_SRC:%.c=$(BUILD)/obj/%.d)

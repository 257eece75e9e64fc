# limitledger: build, install, show, check.  `make help` lists the targets.
#
# Two kinds of goals.  Tasks start from a machine that may have nothing but git
# and make: they fetch what is missing, then call make anew.  Everything else is
# PGXS, which can be read only once PostgreSQL's build files are there.

EXTENSION  = limitledger
MODULE_big = limitledger

# The control file owns the version.
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" limitledger.control)

# Debian keeps each major version's pg_config in a folder of its own.
PG_CONFIG ?= $(firstword $(wildcard /usr/lib/postgresql/15/bin/pg_config) pg_config)

SUDO := $(if $(filter-out 0,$(shell id -u)),sudo)
ALL_HEADERS = $(wildcard src/*.h src/*/*.h test/unit/*.h test/model/*.h test/model/explore/*.h test/fuzz/*.h)

TASKS = help setup demo check bench unit layering mutants explore gate prove fuzz sanitize valgrind coverage \
        ready unit-build explore-build gate-build
GOALS = $(or $(MAKECMDGOALS),all)

.DELETE_ON_ERROR:
all: ## the module and its install script
install: ## both into PostgreSQL 15, as root

ifneq ($(filter $(TASKS),$(GOALS)),)

.PHONY: $(TASKS) $(filter-out $(TASKS),$(GOALS))
.NOTPARALLEL:

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
setup: ## install the Debian packages that are missing
	@tools/setup check
demo: ## the whole story on a private server; KEEP=1 leaves it running
	@tools/setup
	@$(MAKE) --no-print-directory ready
	@demo/run
check: ## every test; CI=1 makes warnings errors
	@tools/setup check
	@$(MAKE) --no-print-directory ready
	@test/run
bench: ## beside its peers, what a call costs, and among stored reservations; BENCH_MINUTES=3 for a short run
	@tools/setup bench
	@$(MAKE) --no-print-directory ready
	@status=0; for part in peers run retention; do bench/$$part || status=1; done; exit $$status
unit: ## tests of the decisions alone
	@test/run unit model
gate: ## the release gate: an hour on two cores, or GATE_MINUTES=2
	@tools/setup
	@tools/setup prove
	@$(MAKE) --no-print-directory ready
	@$(MAKE) --no-print-directory -s gate-build
	@test/gate/run --report build/gate/report.md
layering: ## who may include whom
	@tools/layering
mutants: ## takes rules out of the code, one by one; a test must miss each
	@tools/setup check
	@test/mutants/run
explore: build/model/explore ## the whole protocol in memory: every order, and ten million at random
	build/model/explore --all
prove: ## the decisions proved over all inputs, by Frama-C
	@tools/setup prove
	@test/prove/run

fuzz: build/fuzz/core build/fuzz/envelope build/fuzz/seeds ## random input for the core, the envelopes, the calls; FUZZ_SECONDS=60 each; needs clang
	@mkdir -p build/fuzz/corpus build/fuzz/corpus-core
	@build/fuzz/seeds build/fuzz/corpus
	build/fuzz/envelope -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -print_final_stats=1 \
	  -artifact_prefix=build/fuzz/ build/fuzz/corpus
	build/fuzz/core -max_total_time=$(FUZZ_SECONDS) -max_len=1024 -print_final_stats=1 \
	  -artifact_prefix=build/fuzz/core- build/fuzz/corpus-core
	@$(MAKE) --no-print-directory ready
	LIMITLEDGER_SECONDS=$(FUZZ_SECONDS) test/run tap/107_fuzz

sanitize: ## the tests on a server with UBSan, and with ASan, in the extension
	@tools/setup sanitize
	@test/sanitize/run ubsan asan
valgrind: ## the regression tests under memcheck; needs valgrind
	@tools/setup sanitize
	@test/sanitize/run valgrind
coverage: ## lines of src that the tests run, branches of src/core; needs gcov
	@tools/setup check
	@test/sanitize/coverage

# `all` builds as the caller; `install` alone needs the rights of root.
ready:
	@$(MAKE) --no-print-directory -s all
	@echo "installing into $$($(PG_CONFIG) --pkglibdir) and $$($(PG_CONFIG) --sharedir)/extension$(if $(SUDO), (sudo))"
	@$(SUDO) $(MAKE) --no-print-directory -s install PG_CONFIG=$(PG_CONFIG)

# The decisions and the envelopes, compiled where no PostgreSQL header can be found.
DECISIONS  = $(patsubst %.c,build/%.o,$(wildcard src/core/*.c) src/ledger/roll.c)
ENVELOPES  = $(patsubst %.c,build/%.o,$(wildcard src/envelope/*.c))
UNIT_FLAGS = -Isrc -Itest/unit -g -Wall -Wextra -Wdeclaration-after-statement $(if $(CI),-Werror) \
             -fsanitize=address,undefined -fno-sanitize-recover=all $(CFLAGS)
UNITS      = $(patsubst test/%.c,build/%,$(wildcard test/unit/*.c))
MODEL      = $(patsubst %.c,build/%.o,$(wildcard test/model/*.c))

unit-build: $(UNITS) $(if $(MODEL),build/model/run) build/model/explore
build/unit/%: build/test/unit/%.o $(DECISIONS) $(ENVELOPES)
	@mkdir -p $(@D)
	$(CC) $(UNIT_FLAGS) -o $@ $^ -lm -lsodium
build/model/run: $(MODEL) $(DECISIONS)
	@mkdir -p $(@D)
	$(CC) $(UNIT_FLAGS) -o $@ $^ -lm
explore-build: build/model/explore
# Much to do, and no sanitizers: the same decisions are under them everywhere else.
EXPLORER   = $(wildcard test/model/explore/*.c src/core/*.c) src/ledger/roll.c
build/model/explore: $(EXPLORER) $(ALL_HEADERS)
	@mkdir -p $(@D)
	$(CC) -O2 -Isrc -Wall -Wextra -Wdeclaration-after-statement $(if $(CI),-Werror) $(CFLAGS) -o $@ $(EXPLORER)
build/%.o: %.c $(ALL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(UNIT_FLAGS) -c -o $@ $<
build/test/unit/envelope_fuzz.o: test/fuzz/envelope.c
build/test/unit/core_fuzz.o: test/fuzz/core.c

# libFuzzer is part of clang.
FUZZ_SECONDS ?= 60
FUZZ_CC    = clang
FUZZ_FLAGS = -Isrc -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
FUZZED     = $(wildcard src/envelope/*.c) src/core/transition.c
build/fuzz/envelope: test/fuzz/envelope.c $(FUZZED) $(ALL_HEADERS)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_FLAGS) -o $@ $< $(FUZZED) -lsodium
build/fuzz/core: test/fuzz/core.c $(wildcard src/core/*.c) $(ALL_HEADERS)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_FLAGS) -o $@ $< $(wildcard src/core/*.c)
build/fuzz/seeds: build/test/fuzz/seeds.o $(ENVELOPES) $(DECISIONS)
	@mkdir -p $(@D)
	$(CC) $(UNIT_FLAGS) -o $@ $^ -lm -lsodium

# The release gate: the driver, what lets a flush of its server fail, the auditor.
GATE_FLAGS = -O2 -g -Wall -Wextra -Wdeclaration-after-statement $(if $(CI),-Werror)
GATE_PQ    = -I$$($(PG_CONFIG) --includedir) -L$$($(PG_CONFIG) --libdir) -lpq
gate-build: build/model/explore build/gate/driver build/gate/auditor build/gate/sync.so
build/gate/driver: $(wildcard test/gate/driver/*.[ch])
	@mkdir -p $(@D)
	$(CC) $(GATE_FLAGS) -o $@ $(filter %.c,$^) $(GATE_PQ)
build/gate/auditor: $(wildcard test/gate/auditor/*.[ch])
	@mkdir -p $(@D)
	$(CC) $(GATE_FLAGS) -o $@ $(filter %.c,$^) $(GATE_PQ)
build/gate/sync.so: test/gate/sync.c
	@mkdir -p $(@D)
	$(CC) $(GATE_FLAGS) -shared -fPIC -o $@ $< -ldl

# A goal of PGXS beside a task, as in `make clean check`.
$(filter-out $(TASKS),$(GOALS)):
	@$(MAKE) --no-print-directory $@

else

SCRIPT     = sql/limitledger--$(EXTVERSION).sql
FRAGMENTS  = $(sort $(wildcard sql/[0-9][0-9]-*.sql))
# Scripts of earlier versions, frozen as they were released, and the ways from one
# to the next.  The present version's is built, even if it is frozen already.
RELEASED   = $(filter-out sql/released/$(notdir $(SCRIPT)),$(wildcard sql/released/limitledger--*.sql))
DATA       = $(RELEASED) $(wildcard sql/limitledger--*--*.sql)
DATA_built = $(SCRIPT)
OBJS       = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))
EXTRA_CLEAN = build results log tmp_check tmp_check_iso output_iso regression.diffs regression.out

PG_CPPFLAGS = -I$(srcdir)/src
PG_CFLAGS   = -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers \
              -Wshadow=compatible-local -Wstrict-prototypes $(if $(CI),-Werror)
SHLIB_LINK  = -lsodium

# Without the compiler that the server's JIT wants, there is just no inlining.
ifeq ($(shell command -v $$($(PG_CONFIG) --configure 2>/dev/null | sed -n "s/.*'CLANG=\([^']*\)'.*/\1/p")),)
override with_llvm = no
endif

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq ($(wildcard $(PGXS)),)
$(error no PostgreSQL build files: `make setup` installs them, or set PG_CONFIG)
endif
include $(PGXS)

$(OBJS) $(OBJS:.o=.bc): $(ALL_HEADERS)

# The install script: the chapters in order, the receipt's columns and, for the
# second time, the audit's query put in.
$(SCRIPT): $(FRAGMENTS) sql/receipt.inc limitledger.control
	sed -n '/^-- the audit:$$/,/^-- :the audit$$/p' sql/55-audit.sql > $@.audit
	sed -e '/^@receipt@$$/{' -e 'r sql/receipt.inc' -e 'd' -e '}' \
	    -e '/^@audit@$$/{' -e 'r $@.audit' -e 'd' -e '}' $(FRAGMENTS) > $@
	rm $@.audit

endif

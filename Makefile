# SPDX-License-Identifier: Apache-2.0
# A thin front for meson: the commands of the README.
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
PYTHON = /usr/bin/python3

.PHONY: all demo test test-full fuzz accuracy truth bench bench-rest growth soak startup daily-size report-cost publish-cost fleet-size wheel install docs format check-format clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

# Later changes of meson.build are ninja's business.
$(BUILD)/build.ninja:
	@tools/install-deps build
	@meson setup $(BUILD) --prefix "$(PREFIX)" >/dev/null

demo: all
	@$(BUILD)/proctor run -i 100ms -o $(BUILD)/demo.proctor --force --csv $(BUILD)/demo.csv --summary $(BUILD)/demo.json -- $(BUILD)/demo_job
	@echo "samples: $(BUILD)/demo.csv   summary: $(BUILD)/demo.json   run file: $(BUILD)/demo.proctor"

test:
	@tools/install-deps test
	@$(PYTHON) tools/run_tests.py

# The longer suite: everything in `make test`, and the parts that take their time.
test-full:
	@tools/install-deps full
	@$(PYTHON) tools/run_tests.py --full

# Every parser with any bytes: `make fuzz SECONDS=600`.
SECONDS = 20
fuzz:
	@tools/install-deps test
	@tools/fuzz --seconds $(SECONDS)

# What we say of machines and jobs beside what others say: doc/accuracy.md.
accuracy: all
	@tools/install-deps test
	@{ $(PYTHON) tools/accuracy $(BUILD)/proctor && printf '\n## Jobs\n\n' && \
	  $(PYTHON) tools/truth $(BUILD)/proctor && printf '\n' && \
	  $(PYTHON) tools/gpu-truth --kept doc/accuracy.md; } > $(BUILD)/accuracy.md
	@mv $(BUILD)/accuracy.md doc/accuracy.md

# Jobs whose use is known, beside what we say of them; fails where that is not right.
truth: all
	@tools/install-deps test
	@$(PYTHON) tools/truth $(BUILD)/proctor

# What watching costs, beside others: doc/performance.md. `make bench BENCH=--quick` only prints.
BENCH = --document doc/performance.md
bench: all
	@$(PYTHON) tools/bench $(BUILD)/proctor $(BENCH)

# The other numbers of processes at the other rates. Some 45 minutes.
bench-rest: all
	@$(PYTHON) tools/bench $(BUILD)/proctor --rest --repetitions 2 $(BENCH)

growth: all
	@$(PYTHON) tools/growth $(BUILD)/proctor --document doc/performance.md

# Many samples, flat memory: `make soak SAMPLES=20000` for less than a million. One each millisecond.
SAMPLES = 1000000
soak: all
	@$(PYTHON) tools/soak $(BUILD)/proctor --samples $(SAMPLES) --document doc/performance.md

# What it costs to start and to end. Some seconds.
startup: all
	@$(PYTHON) tools/startup $(BUILD)/proctor --document doc/performance.md

# What a run file grows by in a day, table by table: doc/run-file.md. Three minutes.
daily-size: all
	@$(PYTHON) tools/daily-size $(BUILD)/proctor --document doc/run-file.md

# What a report costs to make and to open: doc/performance.md. Some five minutes.
report-cost: all
	@tools/install-deps test
	@$(PYTHON) tools/report-cost $(BUILD)/proctor --document doc/performance.md

# What bad servers cost a run that is published: doc/performance.md. Some seven minutes.
publish-cost: all
	@$(PYTHON) tools/publish-cost $(BUILD)/proctor --document doc/performance.md

# What many nodes send and what servers keep of it: doc/fleet.md. Two minutes.
fleet-size: all
	@tools/install-deps test
	@$(PYTHON) tools/fleet-size $(BUILD)/proctor --document doc/fleet.md

# The Python package with library and command inside, for any Python 3 of this architecture.
wheel: all
	@$(PYTHON) tools/proctor_wheel.py $(BUILD) $(BUILD)/wheel

install: all
	@meson configure $(BUILD) -Dprefix="$(PREFIX)" >/dev/null
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --quiet >/dev/null

# Documents that follow from the tables.
docs: all
	@$(BUILD)/gendoc metrics > doc/metrics.md
	@$(BUILD)/gendoc dialects > doc/dialects.md

format:
	@clang-format -i $$(git ls-files '*.c' '*.h')

check-format:
	@tools/install-deps test
	@clang-format --dry-run --Werror $$(git ls-files '*.c' '*.h')

clean:
	@rm -rf build build-*

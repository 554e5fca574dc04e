# Plain verbs. Each does its own set-up in .venv; a second run installs nothing again.
PYTHON ?= python3
BIN := .venv/bin
KERNELS := $(wildcard src/eligo/kernels/*.py src/eligo/kernels/*.pxd)

.PHONY: setup demo test test-interpreted test-engines test-slurm test-htcondor test-postgres test-faults test-corpus test-page test-plugins test-plugins-short try-plugin page check-page need-npm fuzz check bench papers docs format clean

setup: .venv/installed

# pip with a line for every package that it fetches, so that nobody wonders what takes so long.
INSTALL = bash -o pipefail -c 'env -u ELIGO_PURE $(BIN)/python -m pip install --disable-pip-version-check "$$@" \
  | sed -un "s/^Collecting \([A-Za-z0-9._-]*\).*/  \1/p; s/^  Building editable for eligo.*/  compiling .../p"' pip

# ELIGO_PURE must not stop the compilation: it chooses at run time which form is used.
.venv/installed: pyproject.toml setup.py $(KERNELS)
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "eligo: installing into .venv, in a minute or two:"
	@$(INSTALL) -e ".[plot,server]"
	@env -u ELIGO_PURE $(BIN)/eligo --version
	@touch $@

# What the developers' verbs need besides; the product is installed already, and is not compiled again for it.
.venv/tools: .venv/installed
	@echo "eligo: installing the tools for tests and checks, in a minute or two:"
	@$(INSTALL) "eligo[dev]"
	@touch $@

demo: setup
	@$(BIN)/python examples/demo.py

TESTS ?= tests

# The layers are tested by `make check`, and not here again.
test: .venv/tools
	$(BIN)/python -m pytest -q -n 2 $(TESTS) --ignore=tests/test_architecture.py

INTERPRETED := tests/test_same_plan.py tests/test_positions.py tests/test_theory.py tests/test_dag.py \
  tests/test_execution.py tests/test_policies.py tests/test_pools.py tests/test_finishing.py tests/test_batches.py \
  tests/test_simulation.py tests/test_simulation_volatile.py

# What the kernels are for, interpreted; that plans are the same in both forms is a test of its own.
test-interpreted: .venv/tools
	ELIGO_PURE=1 $(BIN)/python -m pytest -q -n 2 $(INTERPRETED)

# Slurm, HTCondor and PostgreSQL for real, two at the same time; where one cannot be had, that is said aloud.
test-engines: .venv/tools
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target test-slurm test-htcondor test-postgres

test-slurm: .venv/tools
	@echo "eligo: tests against a real Slurm cluster; the first run fetches it, in some seconds ..."
	timeout 1200 $(BIN)/python -m pytest -q tests/slurm

test-htcondor: .venv/tools
	@echo "eligo: tests against a real HTCondor pool; the first run builds it, in one or two minutes ..."
	timeout 1500 $(BIN)/python -m pytest -q tests/htcondor

test-postgres: .venv/tools
	@echo "eligo: tests against a real PostgreSQL; it takes a minute or two ..."
	timeout 1500 $(BIN)/python -m pytest -q tests/postgres

# The page that the server shows and that static pages are made of: TypeScript, bundled into the package.
page: need-npm page/node_modules/installed
	@cd page && npm run --silent build

need-npm:
	@command -v npm >/dev/null || { echo "eligo: the page needs Node (npm): install Node 20 or later and run this again" >&2; exit 1; }

page/node_modules/installed: page/package.json page/package-lock.json | need-npm
	@echo "eligo: installing what the page is built with ..."
	@cd page && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

check-page: need-npm page/node_modules/installed
	cd page && npx --no-install tsc --noEmit

CHROMIUM ?= /usr/bin/chromium

# The page in a real browser. Where there is none, or no Node, nothing is tested, and that is said aloud.
test-page: .venv/tools
	@if ! command -v npm >/dev/null; then echo "eligo: TESTS OF THE PAGE ARE SKIPPED: there is no Node (npm) here" >&2; \
	elif ! test -x "$(CHROMIUM)"; then echo "eligo: TESTS OF THE PAGE ARE SKIPPED: there is no browser at $(CHROMIUM)" >&2; \
	else $(MAKE) --no-print-directory page && cd page && npm run --silent unit \
	  && PYTHON="$(abspath $(BIN))/python" CHROMIUM="$(CHROMIUM)" timeout 900 npm run --silent browser; fi

# Each engine in an environment of its own, which the first run makes; where one cannot be had, that is said aloud.
test-plugins: .venv/tools
	@echo "eligo: tests inside the engines that people have; the first run installs them, in some minutes ..."
	timeout 1200 $(BIN)/python -m pytest -q -n 2 --dist loadfile tests/plugins

# Only whether tasks begin in the order, in the engines that are quick to have.
test-plugins-short: .venv/tools
	@echo "eligo: the order inside engines that people have; the first run installs them, in a minute or two ..."
	timeout 600 $(BIN)/python -m pytest -q -n 2 --dist loadfile -k begin $(addprefix tests/plugins/,snakemake dask parsl luigi doit)

# One engine of another version: make try-plugin ENGINE=dask WITH="distributed==2025.12.0"
try-plugin: .venv/tools
	@$(BIN)/python tests/plugins/engine_venv.py $(ENGINE) $(WITH)

FOLDER ?= .

test-corpus: .venv/tools
	@$(BIN)/python tests/corpus.py $(FOLDER)

SECONDS ?= 20

# Kills, full disks and tasks without end; the kills go on for at most SECONDS.
test-faults: SECONDS := $(if $(filter command line environment,$(origin SECONDS)),$(SECONDS),120)
test-faults: .venv/tools
	ELIGO_FAULT_SECONDS=$(SECONDS) $(BIN)/python -m pytest -q -s tests/faults

# SECONDS for each format. Where atheris cannot be had, nothing is fuzzed, and that is said aloud.
fuzz: .venv/tools
	@if $(BIN)/python -c "import atheris" 2>/dev/null \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check "eligo[fuzz]"; \
	then $(BIN)/python tests/fuzz/fuzz_formats.py $(SECONDS); \
	else echo "eligo: FUZZING IS SKIPPED: atheris cannot be installed here" >&2; fi

check: .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py
	$(BIN)/python -m pytest -q -n 2 --doctest-modules src/eligo papers --ignore=src/eligo/kernels --doctest-glob='*.md' docs README.md

bench: .venv/tools
	@$(BIN)/python -m benchmarks

# Every paper's tables and figures again, into out/; `python -m papers PAPER` for one.
papers: .venv/tools
	@for paper in comparison sweep batch clustering; do $(BIN)/python -m papers $$paper -o out || exit; done

# The drawing in docs/develop/architecture.md, from what the modules import; and the generated parts of docs/reference.
docs: .venv/tools
	$(BIN)/python docs/develop/draw_architecture.py
	$(BIN)/python docs/develop/write_reference.py

format: .venv/tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist out page/node_modules page/build src/eligo/pages/built src/eligo.egg-info src/eligo/kernels/*.c src/eligo/kernels/*.so

# Each target sets up .venv if necessary; a second run installs nothing.
PYTHON ?= python3
BIN := .venv/bin
KERNELS := $(wildcard src/eligo/kernels/*.py src/eligo/kernels/*.pxd)

# Compiled once, as in an installed package: tests start many processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo wheel checker checker-wasm test test-checker test-certificates test-interpreted test-engines test-slurm test-htcondor test-postgres test-faults test-makefiles test-corpus test-page test-plugins test-plugins-short try-plugin page check-page need-npm fuzz check bench papers docs format clean

setup: .venv/installed

# pip, with a line for every package that it downloads, to show the progress.
INSTALL = bash -o pipefail -c 'env -u ELIGO_PURE $(BIN)/python -m pip install --disable-pip-version-check "$$@" \
  | sed -un "s/^Collecting \([A-Za-z0-9._-]*\).*/  \1/p; s/^  Building editable for eligo.*/  compiling .../p"' pip

# ELIGO_PURE must not stop the compilation: it only selects the form that is used at run time.
.venv/installed: pyproject.toml setup.py $(KERNELS)
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "eligo: installing into .venv, in a minute or two:"
	@$(INSTALL) -e ".[batch,plot,server]"
	@env -u ELIGO_PURE $(BIN)/eligo --version
	@touch $@

# The tools for developers; the product is already installed, and is not compiled again.
.venv/tools: .venv/installed
	@echo "eligo: installing the tools for tests and checks, in a minute or two:"
	@$(INSTALL) "eligo[dev]"
	@touch $@

# The distribution, in dist/: the sources, and from these a wheel with the page in it.
wheel: page .venv/installed
	@$(BIN)/python -c "import build" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check build
	@rm -rf build dist && $(BIN)/python -m build --outdir dist . >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -rf build build.log && ls -l dist

demo: setup
	@$(BIN)/python examples/demo.py

# The second checker of saved plans: `checker/check DAG PLAN`; see docs/reference/proofs.md.
checker: checker/check

checker/check: checker/check.c
	$(CC) -std=c11 -O2 -Wall -Wextra -Werror -o $@ $<

# The same for WebAssembly (WASI). Without the package ziglang, nothing is built, and a message says so.
checker-wasm: .venv/installed
	@if $(BIN)/python -c "import ziglang" 2>/dev/null \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang; \
	then $(BIN)/python -m ziglang cc -target wasm32-wasi -std=c11 -O2 -s -o checker/check.wasm checker/check.c; \
	else echo "eligo: THE CHECKER IS NOT BUILT FOR WEBASSEMBLY: ziglang cannot be installed here" >&2; fi

TESTS ?= tests

# `make check` tests the layers, so they are left out here.
test: .venv/tools
	$(BIN)/python -m pytest -q -n 2 $(TESTS) --ignore=tests/test_architecture.py

FORGED ?= 50000

# Both checkers on real, forged and fuzzed plans; `make test` forges a few hundred.
test-checker: .venv/tools
	ELIGO_FORGED=$(FORGED) $(BIN)/python -m pytest -q -s tests/test_checker.py

MOST ?= 9
RANDOM ?= 100000

# Every certificate of all dags of at most MOST tasks, and of RANDOM ones up to 14, against exact search: for hours.
test-certificates: .venv/tools
	@$(BIN)/python tests/certificates.py $(MOST) $(RANDOM)

INTERPRETED := tests/test_same_plan.py tests/test_positions.py tests/test_within.py tests/test_theory.py tests/test_dag.py \
  tests/test_execution.py tests/test_policies.py tests/test_pools.py tests/test_finishing.py tests/test_batches.py \
  tests/test_simulation.py tests/test_simulation_volatile.py

# The tests of the kernels in interpreted form; another test checks that plans are the same in both forms.
test-interpreted: .venv/tools
	ELIGO_PURE=1 $(BIN)/python -m pytest -q -n 2 $(INTERPRETED)

# Tests with real Slurm, HTCondor and PostgreSQL, two at a time; a message says which of them is unavailable.
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

# The page of the server and of static pages: TypeScript, bundled into the package.
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

# Tests of the page in a real browser. Without a browser or Node, nothing is tested, and a message says so.
test-page: .venv/tools
	@if ! command -v npm >/dev/null; then echo "eligo: TESTS OF THE PAGE ARE SKIPPED: there is no Node (npm) here" >&2; \
	elif ! test -x "$(CHROMIUM)"; then echo "eligo: TESTS OF THE PAGE ARE SKIPPED: there is no browser at $(CHROMIUM)" >&2; \
	else $(MAKE) --no-print-directory page && cd page && npm run --silent unit \
	  && PYTHON="$(abspath $(BIN))/python" CHROMIUM="$(CHROMIUM)" timeout 900 npm run --silent browser; fi

# Each engine in its own environment, which the first run creates; a message says which of them is unavailable.
test-plugins: .venv/tools
	@echo "eligo: tests inside the engines that people have; the first run installs them, in some minutes ..."
	timeout 1200 $(BIN)/python -m pytest -q -n 2 --dist loadfile tests/plugins

# Only whether tasks start in the order, in the engines that are quick to install.
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

# Kills, full disks and endless tasks; the kills last for at most SECONDS.
test-faults: SECONDS := $(if $(filter command line environment,$(origin SECONDS)),$(SECONDS),120)
test-faults: .venv/tools
	ELIGO_FAULT_SECONDS=$(SECONDS) $(BIN)/python -m pytest -q -s tests/faults

# Real Makefiles, built by make and by a run: ELIGO_MAKEFILES=FOLDER:FOLDER names the sources of packages.
test-makefiles: .venv/tools
	$(BIN)/python -m pytest -q -s tests/makefiles

# SECONDS for each format. Without atheris, nothing is fuzzed, and a message says so.
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

# The tables and figures of every paper, into out/; `python -m papers PAPER` for one.
papers: .venv/tools
	@for paper in comparison sweep batch clustering statements; do $(BIN)/python -m papers $$paper -o out || exit; done

# The drawing in docs/develop/architecture.md, from the imports of the modules; and the generated parts of docs/reference.
docs: .venv/tools
	$(BIN)/python docs/develop/draw_architecture.py
	$(BIN)/python docs/develop/write_reference.py

format: .venv/tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist out page/node_modules page/build src/eligo/pages/built src/eligo.egg-info src/eligo/kernels/*.c src/eligo/kernels/*.so checker/check checker/check.wasm

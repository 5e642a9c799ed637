# Every target sets up .venv by itself when it is missing or stale. Only Python >= 3.11, a C++20 compiler and make are assumed.
# Another Python gets an environment of its own: make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
NATIVE := $(wildcard src/everytree/_native/*/*)
CPP    := $(filter %.hpp %.cpp,$(NATIVE) $(wildcard tests/native/*))

# Bytecode is kept even where the environment says otherwise: tests start many processes, each of which would compile
# the library anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast check check-slow bench paper bench-accuracy docs wheels format clean setup compiler
.DEFAULT_GOAL := demo

demo: $(VENV)/.installed        ## fit a meta-tree to a bundled data set and show what comes out
	@$(RUN) -m everytree demo

test: $(VENV)/.tested           ## the whole test suite
	$(RUN) -m pytest -q -m "not slow" -n auto --dist worksteal

test-fast: $(VENV)/.tested      ## the suite without its long tests, which take most of the time
	$(RUN) -m pytest -q -m "not slow and not long" -n auto --dist worksteal

check: $(VENV)/.checked         ## lint, format and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/clang-format --dry-run --Werror $(CPP)

check-slow: $(VENV)/.tested     ## long property runs, the suite under sanitizers, and the one definition rule at link time
	EVERYTREE_LONG_TESTS=1 $(RUN) -m pytest -q
	./tests/sanitize.sh
	./tests/odr.sh

bench: $(VENV)/.benched         ## measure against peers; writes benchmarks/RESULTS.md
	$(RUN) benchmarks/foundation.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/questions.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/schema.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/growing.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/fits.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/estimators.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/distributions.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/exact.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/sampling.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/bayesian_trees.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/online.py --out benchmarks/RESULTS.md
	$(RUN) benchmarks/batches.py --out benchmarks/RESULTS.md

paper: $(VENV)/.benched         ## the paper's Table 1: one update in one batch and row by row, beside the library of its authors
	$(RUN) benchmarks/foundation.py --tables paper_table

bench-accuracy: $(VENV)/.benched  ## accuracy beside other libraries; DATA=folder of CSV files adds their tables
	$(RUN) benchmarks/accuracy.py --data $(or $(DATA),data) --out benchmarks/RESULTS.md
	$(RUN) benchmarks/exact.py --data $(or $(DATA),data) --out benchmarks/RESULTS.md

docs: $(VENV)/.documented        ## the documentation with its gallery, in build/site
	$(RUN) docs/make_gallery.py
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

wheels:                          ## the source and a wheel for each Python found here, in dist, each tested; PYTHONS="..." names them
	@PYTHONS="$(PYTHONS)" ./tests/wheels.sh

format: $(VENV)/.checked
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $(CPP)

setup: $(VENV)/.checked

# ---- the environment: one stamp a set of extras, renewed when the build or the kernels change ------------------------

compiler:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "everytree needs Python 3.11 or newer, but $(PYTHON) is `$(PYTHON) -V 2>&1`; try make PYTHON=python3.12"; exit 1; }
	@printf '#include <concepts>\nint main() { return std::integral<int> ? 0 : 1; }\n' \
	  | $${CXX:-c++} -std=c++20 -x c++ -fsyntax-only - 2>/dev/null \
	  || { echo "everytree needs a C++20 compiler (g++ 10, clang 12 or newer), and none was found; install one or set CXX"; exit 1; }

$(VENV)/bin/python:
	@$(MAKE) --no-print-directory compiler
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml CMakeLists.txt $(NATIVE) | $(VENV)/bin/python
	@$(MAKE) --no-print-directory compiler
	@echo "installing everytree into $(VENV) (compiles the kernels: two to three minutes on two cores)"
	@began=$$(date +%s); $(VENV)/bin/pip install -q --disable-pip-version-check -e . \
	  && echo "installed after $$(($$(date +%s) - began)) s"
	@touch $@

# The packages of one extra, without building everytree again.
extra = $(VENV)/bin/pip install -q --disable-pip-version-check \
  $$($(RUN) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$(1)"])')

$(VENV)/.tested: $(VENV)/.installed
	@$(call extra,test)
	@touch $@

$(VENV)/.benched: $(VENV)/.tested
	@$(call extra,bench)
	@touch $@

$(VENV)/.documented: $(VENV)/.tested
	@$(call extra,docs)
	@touch $@

# Types are checked against the optional libraries too, so they must be there.
$(VENV)/.checked: $(VENV)/.tested
	@$(call extra,check)
	@touch $@

clean:
	rm -rf $(VENV) .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

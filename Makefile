# The two commands of the README are `make demo` and `make test`. They need Python 3.11 or later, make and
# git; everything else is installed into .venv, again only when pyproject.toml has changed.
#
#   make demo ARGS=--keep                    ARGS go to `perdure demo`
#   make test ARGS="-n 0 tests/packaging"    ARGS go to pytest; -n 0: all in one process
#   make bench ONLY=open_and_view            one of benchmarks/; JSON=FILE writes the figures there
#   make chaos SEED=123 MINUTES=3            ARGS go to `python -m chaos`
#   make fuzz TIMES=50 SECONDS=600           how much of it: see tests/fuzz/
#   make mutants ONLY=lock                   the mutants of such a name
#   make test PYTHON=python3.13              the Python for a new .venv

.DEFAULT_GOAL := help
.PHONY: help demo test lint format types bench bench-quick chaos fuzz model mutants clean again

SHELL := /bin/sh
export PYTHON

python := .venv/bin/python
demo_installed := .venv/.installed-for-demo
dev_installed := .venv/.installed-for-dev

# Every process of the test run has a Temporal server of its own.
PARALLEL := -n auto --maxprocesses 4 --dist loadgroup
ONLY :=
# Where the figures are written; those of one benchmark only when it is said where.
JSON := $(if $(ONLY),,benchmarks/results.json)
SEED :=
MINUTES := 10

# How many times more examples hypothesis tries than in the tests, and how long atheris looks.
TIMES := 20
SECONDS := 60

help:
	@echo "make demo     a session runs, dies and resumes, on a Temporal server of its own"
	@echo "make test     the tests"
	@echo "make lint     ruff: rules and format, nothing is changed"
	@echo "make format   ruff: what it can mend, and the format"
	@echo "make types    mypy, strict"
	@echo "make bench    the benchmarks: every budget, in one table; bench-quick: smaller, in two minutes"
	@echo "make chaos    a fleet of sessions under faults, ten minutes; then what is left is checked"
	@echo "make fuzz     bytes, JSON and arguments that nobody meant: many, and new ones each time"
	@echo "make model    every order in which commands, answers and crashes can meet"
	@echo "make mutants  break each safeguard, and see which test notices"
	@echo "make clean    removes caches and builds; .venv stays"

$(demo_installed): pyproject.toml scripts/install.sh
	@sh scripts/install.sh local
	@touch $@

$(dev_installed): pyproject.toml scripts/install.sh
	@sh scripts/install.sh dev
	@touch $@ $(demo_installed)

# A .venv whose Python is gone is made again.
ifneq ($(shell .venv/bin/python -c 1 2>/dev/null && echo runs),runs)
$(demo_installed) $(dev_installed): again
endif

demo: $(demo_installed)
	@.venv/bin/perdure demo $(ARGS)

test: $(dev_installed)
	$(python) -m pytest $(PARALLEL) $(ARGS)

lint: $(dev_installed)
	$(python) -m ruff check
	$(python) -m ruff format --check

format: $(dev_installed)
	$(python) -m ruff check --fix
	$(python) -m ruff format

types: $(dev_installed)
	$(python) -m mypy

bench: $(dev_installed)
	$(python) -m benchmarks $(if $(JSON),--json $(JSON)) $(ARGS) $(ONLY)

bench-quick: $(dev_installed)
	$(python) -m benchmarks --quick $(if $(filter command,$(origin JSON)),--json $(JSON)) $(ARGS) $(ONLY)

# atheris is installed for this alone: it does not come for every Python and machine.
fuzz: $(dev_installed)
	@$(python) -c "import atheris" 2>/dev/null || sh scripts/install.sh dev,fuzz
	PERDURE_FUZZ=$(TIMES) $(python) -m pytest $(PARALLEL) -o timeout=7200 tests/fuzz $(ARGS)
	$(python) -m tests.fuzz lines $(SECONDS)
	$(python) -m tests.fuzz logs $(SECONDS)

model: $(dev_installed)
	$(python) -m tests.model $(ONLY)

mutants: $(dev_installed)
	$(python) -m tests.mutants $(ONLY)

chaos: $(dev_installed)
	$(python) -m chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(ARGS)

clean:
	rm -rf dist .fuzz .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

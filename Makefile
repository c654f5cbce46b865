# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
# Needed beforehand: Python 3.11 or newer, git, make, a C compiler.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
FUZZ ?= -max_total_time=60
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test faults fuzz test-engines test-containers lint format clean

help:
	@echo "make demo          a whole study on a real engine, from draft to audit"
	@echo "make test          linters, types, import rules, and every test that needs no engine"
	@echo "make test-engines  the tests on the real engines (builds them first)"
	@echo "make test-containers  the tests in real containers (needs root, podman, runc and debootstrap)"
	@echo "make faults        attacks on a study, and 200 kills of its collection, in a table (some 40 minutes)"
	@echo "make fuzz          coverage-guided bytes to every parser, for a minute"
	@echo "make lint          only the linters"
	@echo "make format        format the code"
	@echo "make clean         remove the environment and caches of this checkout"

$(VENV)/.run: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("prereg needs Python 3.11 or newer; try make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	@echo "installing prereg into $(VENV)"
	$(PIP) install --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.run
	@echo "installing what the tests need into $(VENV)"
	$(PIP) install --editable '.[test]'
	@touch $@

demo: $(VENV)/.run
	$(BIN)/prereg demo

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not engines and not containers"

test-engines: $(VENV)/.test
	$(BIN)/prereg build hf-5.17.0 hf-5.12.0 hf-5.17.0-xgrammar-0.2.8 hf-5.20.2-smollm2 lcp-0.3.19 lcp-0.3.35
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m engines

test-containers: $(VENV)/.test
	$(BIN)/python -m pytest -m containers tests/containers

faults: $(VENV)/.test
	KILL_POINTS=200 $(BIN)/python -m pytest -q -n $(JOBS) tests/tamper tests/faults

fuzz: $(VENV)/.test
	$(PIP) install --editable '.[fuzz]'
	$(BIN)/python tests/fuzz/fuzz.py $(FUZZ)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# What there is to do here. Needs only Python >= 3.11, pip and make; uses uv where it is there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
UV := $(shell command -v uv 2>/dev/null)

.PHONY: demo test test-e2e check lock clean

demo: $(INSTALLED)  ## evaluate two versions of a real retriever and compare them
	$(BIN)/ragscore demo --engine prefect

test: $(INSTALLED)  ## unit tests and one Prefect test server
	$(BIN)/python -m pytest -q -m "not e2e and not llm"

test-e2e: $(INSTALLED)  ## whole processes: kill -9, Ctrl-C, real servers
	$(BIN)/python -m pytest -q -m e2e

check: $(INSTALLED)  ## style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_imports.py

lock:  ## write requirements.lock anew (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-header --upgrade -q -o requirements.lock

# The lock first, with hashes; then the project itself without its dependencies.
$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "ragscore needs Python 3.11 or later; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
ifdef UV
	uv venv -q --allow-existing --python $(PYTHON) $(VENV)
	uv pip install -q --python $(BIN)/python --require-hashes -r requirements.lock
	uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
else
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) -m pip --python $(BIN)/python install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(PYTHON) -m pip --python $(BIN)/python install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	@touch $@

clean:
	rm -rf $(VENV) .ragscore .mypy_cache .pytest_cache .ruff_cache .hypothesis

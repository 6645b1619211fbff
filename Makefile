# Everything here sets itself up: `make demo` and `make test` need git, Python 3.11, make and a C compiler.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test reproduce kernels lint format lock schema browser clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:[^#]*## /\t/' | expand -t 12

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "anonspark needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --no-deps --require-hashes -r requirements.lock
	$(RUN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

setup: $(READY)  ## create .venv with the locked dependencies and a Java runtime

demo: $(READY)  ## anonymize generated people with an embedded Spark and show the result
	$(RUN)/anonspark demo

# Kernels are compiled once, beside the lint: all processes of the tests would compile them at once.
test: $(READY)  ## formatting, linting, types and all tests
	$(MAKE) --jobs 2 kernels lint browser
	$(RUN)/python -m pytest --numprocesses 2 --dist worksteal

kernels: $(READY)  ## compile the kernels, which else the first process that needs them does
	$(RUN)/python -c 'import anonspark.kernels, pkgutil; \
	[pkgutil.resolve_name(one.name) for one in pkgutil.iter_modules(anonspark.kernels.__path__, "anonspark.kernels.")]'

reproduce: $(READY)  ## run the experiments of the theses on $$ANONSPARK_DATA and write docs/reproduction.md
	$(RUN)/python benchmarks/reproduce.py

browser:  ## install Chromium, which a test opens the report with, where it lacks and we may
	@command -v chromium > /dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; \
	then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium > /dev/null; \
	else echo "Chromium is not installed: the test that opens the report with it is skipped"; fi

lint: $(READY)  ## formatting, linting and types
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy

format: $(READY)  ## format the code and apply safe lint fixes
	$(RUN)/ruff check --fix .
	$(RUN)/ruff format .

lock: $(READY)  ## resolve the dependencies anew into requirements.lock
	$(RUN)/python -m pip install --quiet uv
	$(RUN)/uv pip compile pyproject.toml --extra java --group dev --constraint constraints.txt --override overrides.txt \
	  --universal --python-version 3.11 --generate-hashes --no-header --quiet --output-file requirements.lock

schema: $(READY)  ## write the JSON Schema of the configuration
	$(RUN)/anonspark schema > conf/anonspark.schema.json

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) build dist out .mypy_cache .pytest_cache .ruff_cache

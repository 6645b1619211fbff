# Everything here sets itself up: `make demo` and `make test` need git, Python 3.11, make and a C compiler.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test reproduce lint format lock schema browser clean \
  up submit submit-hdfs releases down image-proof check-schedules

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:[^#]*## /\t/' | expand -t 17

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "anonspark needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --no-deps --require-hashes -r requirements.lock
	$(RUN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

setup: $(READY)  ## create .venv with the locked dependencies and a Java runtime

demo: $(READY)  ## anonymize generated people with an embedded Spark and show the result
	$(RUN)/anonspark demo

test: $(READY) lint browser  ## formatting, linting, types and all tests
	$(RUN)/python -m pytest --numprocesses 2 --dist worksteal

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
	$(RUN)/uv pip compile docker/build-requirements.in \
	  --universal --python-version 3.11 --generate-hashes --no-header --quiet --output-file docker/build-requirements.lock

schema: $(READY)  ## write the JSON Schema of the configuration
	$(RUN)/anonspark schema > conf/anonspark.schema.json

# A cluster of containers for development: docs/docker.md.
WORKERS ?= 2
CONFIG ?= conf/people.yaml
ARGUMENTS ?= --set output.mode=overwrite
HDFS := hdfs://namenode:8020

up:  ## start a Spark cluster of containers: WORKERS=2
	docker compose up --detach --build --wait --scale spark-worker=$(WORKERS)

submit:  ## anonymize on that cluster: CONFIG=conf/people.yaml ARGUMENTS="--set output.mode=overwrite"
	docker compose run --rm --service-ports submit $(CONFIG) $(ARGUMENTS)

submit-hdfs:  ## the same from and to an HDFS of containers, with the table of people
	docker compose --profile hdfs up --detach --wait namenode datanode
	docker compose --profile hdfs exec --no-TTY namenode bash -ec 'hdfs dfs -mkdir -p /data /releases; \
	  hdfs dfs -put -f /srv/data/people.csv /data; hdfs dfs -chown -R spark /data /releases'
	docker compose run --rm --service-ports submit $(CONFIG) $(ARGUMENTS) \
	  --set input.path=$(HDFS)/data/people.csv --set output.path=$(HDFS)/releases/people

releases:  ## copy the releases out of the cluster to out/
	mkdir -p out
	docker compose cp --index 1 spark-worker:/srv/anonspark/out/. out/

down:  ## stop that cluster; releases and event logs stay in their volumes
	docker compose --profile hdfs --profile submit down

image-proof:  ## build and try the image without Docker: root on Debian, a network, ten minutes
	docker/prove.sh

check-schedules:  ## check schedules and compose file with Airflow, Kubernetes' schemas, systemd, shellcheck
	$(PYTHON) -m venv build/check-schedules
	build/check-schedules/bin/python -m pip install --quiet --requirement schedules/check-requirements.txt
	build/check-schedules/bin/python schedules/check.py

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) build dist out .mypy_cache .pytest_cache .ruff_cache

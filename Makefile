SHELL := /bin/bash
RUN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE     # compiling all that is imported is most of a short run

.DEFAULT_GOAL := help
.PHONY: help install install-s3 install-kafka-broker demo up down check test long chaos browser bench goldens lock clean

help:                   ## these lines
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):[^#]*## */  make \1\t/' | expand -t 30

install:                ## .venv from the committed lock, with the jars of Delta and Kafka's connector; does nothing when done
	@infra/install

install-s3: install     ## also the jars for s3a:// in the JVM (660 MB; what runs in tasks needs none)
	@$(RUN)/python infra/jars.py s3

install-kafka-broker: install   ## also a Kafka broker, for the tests (43 MB)
	@$(RUN)/python infra/jars.py kafka

demo: install           ## the demo pipeline: answers at every boundary, a crash survived, verify
	@$(RUN)/forebay demo

up: install             ## Airflow, MLflow, data docs and a warm Spark on 127.0.0.1; prints where they are and how to log in
	@$(RUN)/python -m infra.up

down:                   ## ends what `make up` started
	@$(RUN)/python -m infra.up down

check: install          ## lint, types, rooms, fast tests: no JVM
	@$(MAKE) --no-print-directory --jobs 2 --output-sync fast-rules fast-answers flake8 isort mypy rooms

test: install-kafka-broker      ## lint, types, then every test, the fast ones first
	@$(MAKE) --no-print-directory --jobs 3 --output-sync flake8 isort mypy rooms
	@FOREBAY_TESTS=full $(RUN)/python -m pytest -q --durations=15 -n 2 --dist worksteal -m "(fast or slow or s3 or sample) and not (spark or kafka or long) and (not chaos or sample)"
	@FOREBAY_TESTS=full $(RUN)/python -m pytest -q --durations=15 -n 2 --dist worksteal -m "(spark or kafka) and not long and (not chaos or sample)"

.PHONY: fast-rules fast-answers flake8 isort mypy rooms      # parts of check and test, beside each other
fast-rules:              # 22 s of processor time, as the other half; each imports less than both together
	@$(RUN)/python -m pytest -q -x -m fast tests/optimizer tests/jobs tests/expectations tests/test_layers.py tests/test_readme.py tests/infra/test_papers.py

fast-answers:
	@$(RUN)/python -m pytest -q -x -m fast tests $(addprefix --ignore tests/,optimizer jobs expectations test_layers.py test_readme.py infra/test_papers.py)

# What passed is looked at again when it changed: the first two look at each file by itself, mypy again at all if any changed or left.
ifneq ($(filter flake8 isort mypy rooms,$(MAKECMDGOALS)),)      # the others need no list of files
PRODUCT := optimizer expectations jobs dags infra forebay
CODE := $(shell find $(PRODUCT) tests setup.py -name node_modules -prune -o -name '*.py' -print)
TYPED := $(shell find $(PRODUCT) -name '*.py' -o -type d -not -name __pycache__)
endif
SETTINGS := setup.cfg requirements.lock
WHAT = $(if $(filter $(SETTINGS),$?),.,$(filter %.py,$?))
BEGIN = @mkdir -p $(@D) && touch $@.begun      # what is changed meanwhile is newer
END = @mv $@.begun $@

flake8 isort mypy rooms: %: .checked/% ;@:

.checked/flake8: $(CODE) $(SETTINGS)
	$(BEGIN)
	@$(RUN)/flake8 $(WHAT)
	$(END)

.checked/isort: $(CODE) $(SETTINGS)
	$(BEGIN)
	@$(RUN)/isort --check-only --quiet $(WHAT)
	$(END)

.checked/mypy: $(TYPED) $(SETTINGS)
	$(BEGIN)
	@$(RUN)/mypy
	$(END)

.checked/rooms: $(TYPED) $(SETTINGS)
	$(BEGIN)
	@$(RUN)/lint-imports --cache-dir .checked/imports > .checked/rooms.txt || { cat .checked/rooms.txt; exit 1; }
	$(END)

long: install           ## what takes a minute and more each: on a store, over many batches, through Spark once more
	@FOREBAY_TESTS=full $(RUN)/python -m pytest -q -n 2 --dist loadgroup -m "long and not chaos"

chaos: install          ## kill -9 at every named failpoint, twice in a row
	@FOREBAY_TESTS=full $(RUN)/python -m pytest -q -n 2 --dist worksteal -m chaos

browser: install        ## one way through all pages in headless Chromium (needs chromium and Node.js 20); pictures go to docs/pictures
	@command -v chromium >/dev/null || { echo "forebay: chromium is missing; install it with: apt-get install -y chromium" >&2; exit 1; }
	@cd tests/browser && npm ci --silent
	@mkdir -p docs/pictures
	@FOREBAY_SHOTS=$(CURDIR)/docs/pictures $(RUN)/python -m pytest -q -m browser

bench: install          ## the comparisons with other systems
	@$(RUN)/forebay bench

goldens: install        ## rewrites the golden files of plans and their SQL, and the JSON Schema of forebay.yml
	@$(RUN)/python -m pytest -q -m fast --goldens

lock: install           ## compiles requirements.in into requirements.lock
	@$(RUN)/uv pip compile requirements.in --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" -o requirements.lock

clean:                  ## removes what tests, builds and the demo leave; keeps .venv
	@rm -rf demo build .checked .pytest_cache .mypy_cache .hypothesis spark-warehouse metastore_db derby.log *.egg-info
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

# `make demo` and `make test` install what they need. `make help` lists all targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
GENERATOR := $(VENV)/client-generator
RUNNABLE := $(VENV)/.runnable
PIP_FLAGS := -qq --disable-pip-version-check
JOBS ?= 2
PLATFORMS := $(foreach name,dispense dovetail jane joint sweed weedmaps,tests/e2e/test_$(name).py)
SLOW := test_embedded.py test_embedded_refusals.py test_keeper.py test_page_plans.py test_releases.py test_tasks_model.py test_tasks_plans.py test_volume.py

# Tests start hundreds of Python processes: compiling the program for each of them is a quarter of their start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast proofs chaos soak months attack screenshots check fix bench bench-fetch bench-images bench-volume bench-country bench-pages bench-harness bench-queue bench-storage lock openapi sample clean

help: ## List all targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## Create the virtual environment with the locked dependencies

# What the program needs to run, without what its development needs.
$(RUNNABLE): deploy/requirements.lock deploy/requirements-build.lock pyproject.toml package-lock.json hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Menuwatch needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Use another: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "Setting up $(VENV) (once, about a minute) ..."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install $(PIP_FLAGS) --require-hashes -r deploy/requirements.lock -r deploy/requirements-build.lock
	@command -v npm >/dev/null || $(BIN)/python -m pip install $(PIP_FLAGS) --require-hashes -r requirements-node.lock
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e .
	@touch $@

$(READY): requirements.lock clients/python/pyproject.toml $(RUNNABLE)
	@$(BIN)/python -m pip install $(PIP_FLAGS) --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e clients/python
	@touch $@

# The generator of clients that a test runs on openapi.json; its pins are not those of the project.
$(GENERATOR)/.ready: requirements-client-generator.lock $(READY)
	@echo "Setting up $(GENERATOR) (once, some seconds) ..."
	@$(BIN)/python -m venv --clear $(GENERATOR)
	@$(GENERATOR)/bin/python -m pip install $(PIP_FLAGS) --require-hashes -r requirements-client-generator.lock
	@touch $@

demo: $(RUNNABLE) ## Run the demo: crawl a simulated market; in a terminal, keep its dashboard and site running
	@if [ -n "$(KEEP)" ] || { [ -t 0 ] && [ -t 1 ]; }; then $(BIN)/menuwatch demo --keep; else $(BIN)/menuwatch demo; fi

test: $(READY) $(GENERATOR)/.ready check ## Check style, types and imports, and run all tests
	@echo "Running all tests, $(JOBS) at a time ..." && $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -rs

test-fast: $(READY) ## Run the unit and database tests without the slow ones (under three minutes)
	@$(BIN)/python -m pytest -n $(JOBS) -q tests/unit tests/db $(addprefix --ignore=tests/db/,$(SLOW))

proofs: $(READY) ## Run the long form of tests of which `make test` runs a short one
	@ALL_WIDTHS=1 API_EXAMPLES=10 $(BIN)/python -m pytest tests/browser/test_all_pages.py tests/browser/test_whole_api.py --timeout 3600
	@ALL_STORES=1 ALL_SEVERITIES=1 $(BIN)/python -m pytest tests/quality/test_minneapolis.py tests/quality/test_faults.py --timeout 3600
	@PICTURES=1500 ODD_ROUNDS=24 ALL_WRITES=1 $(BIN)/python -m pytest tests/sim/test_images.py tests/api/test_odd_requests.py tests/exports/test_publish.py --timeout 1800
	@ALL_MOODS=1 ALL_QUESTIONS=1 $(BIN)/python -m pytest tests/e2e/test_demo_truth.py $(PLATFORMS) tests/mcp/test_questions.py --timeout 1800

chaos: $(READY) ## Crash-test the task engine (ten minutes; SEED=… repeats a run)
	@$(BIN)/python -m tests.chaos.run $(if $(SEED),--seed $(SEED))
	@MODEL_EXAMPLES=1000 $(BIN)/python -m pytest tests/db/test_tasks_model.py --timeout 3600
	@KILL_CYCLES=12 $(BIN)/python -m pytest tests/e2e/test_kill.py --timeout 1800
	@MATCHING_SEEDS=300 $(BIN)/python -m pytest tests/matching/test_alike.py -n $(JOBS)
	@STORAGE_ROUNDS=400 $(BIN)/python -m pytest tests/storage/test_faults.py --timeout 1800
	@JS_TASKS=1000 JS_KILLS=5 $(BIN)/python -m pytest tests/workers/test_javascript_worker.py --timeout 3600

soak: $(READY) ## Simulate three days against a hostile host, and one day of each other platform (ten minutes and more; SEED=… repeats a plan)
	@$(BIN)/python -m tests.soak.run $(if $(SEED),--seed $(SEED))

months: $(READY) ## Simulate twenty months of five stores on every platform with random faults (ten minutes per platform; SEED=… repeats a run)
	@$(BIN)/python -m tests.months.run $(if $(SEED),--seed $(SEED))

attack: $(READY) ## Attack a running server with hostile requests, files and faults (15 minutes; PART=…, SEED=…)
	@$(BIN)/python -m tests.attack.run $(if $(SEED),--seed $(SEED)) $(if $(PART),--part $(PART))

screenshots: $(READY) ## Take screenshots of every page, light, dark and narrow (needs Chromium)
	@SCREENSHOTS=$(CURDIR)/screenshots $(BIN)/python -m pytest tests/browser -n $(JOBS)

check: $(READY) ## Check style, types, vocabulary and the import contract
	@echo "Checking vocabulary ..." && $(BIN)/python -m tests.vocabulary
	@echo "Checking style (ruff) ..." && $(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@echo "Checking types (mypy, up to two minutes without a cache) ..." && $(BIN)/mypy --no-error-summary --num-workers $(JOBS)
	@echo "Checking imports ..." && { $(BIN)/lint-imports --no-cache > $(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }; }

fix: $(READY) ## Fix style automatically
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

bench: $(READY) ## Benchmark refresh, images and a large catalog (20 minutes)
	@$(BIN)/python bench/refresh.py
	@$(BIN)/python bench/images.py
	@$(BIN)/python bench/volume.py

bench-volume: $(READY) ## Benchmark a catalog of a million products (ten minutes, 3 GB of disk)
	@$(BIN)/python bench/volume.py

bench-pages: $(READY) ## Benchmark every list and page of a large installation (half an hour, 6 GB of disk)
	@$(BIN)/python bench/pages.py

bench-country: $(READY) ## Benchmark a country of 12,000 stores and 7.2 million products (two hours, 60 GB of disk; FOLDER=… keeps it)
	@$(BIN)/python bench/country.py $(if $(FOLDER),--keep $(FOLDER))

bench-matching: $(READY) ## Benchmark product matching against Splink and plain rules, and a million listings (half an hour)
	@$(BIN)/python bench/matching.py
	@$(BIN)/python bench/matching_database.py

bench-queue: $(READY) ## Benchmark the task queue against four others (half an hour; bench/queue/README.md)
	@$(BIN)/python bench/queue/run.py

bench-harness: $(READY) ## Run the cells of a public queue benchmark: throughput, pressure, chaos (half an hour; bench/harness/README.md)
	@$(BIN)/python bench/harness/run.py

bench-fetch: $(READY) ## Benchmark the fetch path against curl_cffi, crawlee and Scrapy (bench/fetch/README.md)
	@$(BIN)/python bench/fetch.py

bench-storage: $(READY) ## Benchmark payloads on S3 against bare obstore (a minute)
	@$(BIN)/python bench/storage.py

bench-images: $(READY) ## Benchmark image resizing against sharp and Pillow (a minute)
	@$(BIN)/python bench/images.py

openapi: $(READY) ## Regenerate openapi.json and the Python client
	@$(BIN)/python -m menuwatch.api.export_openapi
	@$(BIN)/python clients/python/generate.py

sample: $(READY) ## Regenerate the sample menu of the README
	@$(BIN)/python -m menuwatch.sim.sample samples/dutchie-menu.json.gz

lock: ## Pin the newest dependencies with hashes, also for the image (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade -o requirements.lock pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --extra ip2location --extra ducklake --generate-hashes --no-header --no-emit-index-url --no-annotate -c requirements.lock -o deploy/requirements.lock pyproject.toml
	echo openapi-python-client | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade -o requirements-client-generator.lock -
	printf 'hatchling>=1.27\neditables>=0.5\n' | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate -c requirements.lock -o deploy/requirements-build.lock -

clean: ## Remove build and test artifacts (not your data)
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis dist build

# `make demo` and `make test` are all a newcomer needs; each sets up what it uses. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo test chaos soak months screenshots check fix bench bench-fetch bench-images bench-volume bench-pages bench-queue lock openapi clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## Make the virtual environment with the locked dependencies

$(READY): requirements.lock pyproject.toml package-lock.json hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Menuwatch needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Name another with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "Setting up $(VENV) (once, about a minute) ..."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@command -v npm >/dev/null || $(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements-node.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## See it work: a simulated market, found, crawled and compared; in a terminal its dashboard and site stay up
	@if [ -n "$(KEEP)" ] || { [ -t 0 ] && [ -t 1 ]; }; then $(BIN)/menuwatch demo --keep; else $(BIN)/menuwatch demo; fi

test: $(READY) check ## Everything that must hold: style, types, imports, tests
	@$(BIN)/python -m pytest -n $(JOBS) -rs

chaos: $(READY) ## Crash test of the task engine, about ten minutes (SEED=… repeats a run)
	@$(BIN)/python -m tests.chaos.run $(if $(SEED),--seed $(SEED))
	@MODEL_EXAMPLES=1000 $(BIN)/python -m pytest tests/db/test_tasks_model.py --timeout 3600

soak: $(READY) ## Simulated days against a hostile host, eight workers, about ten minutes (SEED=… repeats a run's plan)
	@$(BIN)/python -m tests.soak.run $(if $(SEED),--seed $(SEED))

months: $(READY) ## Twenty months of ten stores with faults at random, about twenty minutes (SEED=… repeats a run)
	@$(BIN)/python -m tests.months.run $(if $(SEED),--seed $(SEED))

screenshots: $(READY) ## Pictures of every screen and page, light, dark and narrow, in screenshots/ (needs Chromium)
	@SCREENSHOTS=$(CURDIR)/screenshots $(BIN)/python -m pytest tests/browser -n $(JOBS)

check: $(READY) ## Style, types and the import contract
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache > $(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }

fix: $(READY) ## Mend style where that can be done by itself
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

bench: $(READY) ## Measure the catalogue: a refresh beside its limits, pictures beside others, millions of snapshots (20 minutes)
	@$(BIN)/python bench/refresh.py
	@$(BIN)/python bench/images.py
	@$(BIN)/python bench/volume.py

bench-volume: $(READY) ## Measure a catalogue of 1,000,000 products and 6,000,000 snapshots (ten minutes, 3 GB of disk)
	@$(BIN)/python bench/volume.py

bench-pages: $(READY) ## Measure every list and page of an installation of millions (half an hour, 6 GB of disk)
	@$(BIN)/python bench/pages.py

bench-queue: $(READY) ## Measure the task queue beside four others; fetches them (half an hour; bench/queue/README.md)
	@$(BIN)/python bench/queue/run.py

bench-fetch: $(READY) ## Measure the fetch path beside curl_cffi, crawlee and Scrapy; fetches them (bench/fetch/README.md)
	@$(BIN)/python bench/fetch.py

bench-images: $(READY) ## Measure pictures beside sharp and Pillow; fetches them (a minute)
	@$(BIN)/python bench/images.py

openapi: $(READY) ## Write openapi.json anew
	@$(BIN)/python -m menuwatch.api.describe

lock: ## Choose the newest dependencies and pin them with hashes, for us and for the image (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade -o requirements.lock pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate -c requirements.lock -o deploy/requirements.lock pyproject.toml
	echo 'hatchling>=1.27' | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate -c requirements.lock -o deploy/requirements-build.lock -

clean: ## Remove what set-up and runs made (not your data)
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis dist build

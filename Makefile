# `make demo` and `make test` need Python 3.11 to 3.13 (with venv) and make; everything else is fetched, into .venv and .sluice/cache.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# A stack is a dozen processes: each would compile the whole gateway anew.
unexport PYTHONDONTWRITEBYTECODE

ARGS ?=
WORKERS ?= 4
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
PIP := install --quiet --disable-pip-version-check --no-deps --require-hashes --no-compile
PINS := -r requirements.txt -r requirements-dev.txt

# A Python that is there may be too old, lack venv, or be a shim of a version that is not installed: ask each.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3 python; do \
	if $$python -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	>/dev/null 2>&1; then echo $$python; break; fi; done)

.PHONY: setup
setup: $(STAMP) ## make the environment alone; the command is then .venv/bin/sluice

.PHONY: demo
demo: $(STAMP) ## pay a real invoice on this machine and stay up (ARGS=--once: exit 0 or 1)
	exec $(BIN)/sluice demo $(ARGS)

.PHONY: test
test: $(STAMP) ## run the tests (ARGS=tests/core: some of them)
	exec $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak" $(ARGS)

.PHONY: coverage
coverage: export COVERAGE := 1
coverage: test ## run the tests, and fail where none reaches a line or branch of what moves money

.PHONY: soak
soak: $(STAMP) ## run the long tests
	exec $(BIN)/python -m pytest -m soak --timeout 0 $(ARGS)

.PHONY: restore-drill
restore-drill: $(STAMP) ## lose payouts, restore by the commands of docs/backup.md, and pay no one twice
	exec $(BIN)/python -m pytest -v tests/cli/recovery/test_restore_drill.py $(ARGS)

.PHONY: deploy-drill
deploy-drill: $(STAMP) ## run the commands of docs/deploy.md on a bare Debian (as root, with debootstrap)
	DEPLOY_DRILL=1 $(BIN)/python -m pytest -m soak --timeout 0 tests/ops/test_deploy.py $(ARGS)

.PHONY: mutants
mutants: $(STAMP) ## remove guards one by one, and list those that no test misses (ARGS=models/ledger)
	$(BIN)/python .ci/mutants.py $(or $(ARGS),models/ledger models/deposits models/spends models/outcomes models/refunds)

.PHONY: bench
bench: $(STAMP) ## measure against the frozen baselines
	$(BIN)/python -m bench.rpc $(ARGS)
	$(BIN)/python -m bench.api $(ARGS)
	$(BIN)/python -m bench.links $(ARGS)
	$(BIN)/python -m bench.scan $(ARGS)
	$(BIN)/python -m bench.webhooks $(ARGS)
	$(BIN)/python -m bench.batch $(ARGS)
	$(BIN)/python -m bench.siege $(ARGS)
	$(BIN)/python -m bench.timeline $(ARGS)
	$(BIN)/python -m bench.credits $(ARGS)
	$(BIN)/python -m bench.audit $(ARGS)
	$(BIN)/python -m bench.scale $(ARGS)
	$(BIN)/python -m bench.idle $(ARGS)
	$(BIN)/python -m bench.small
	$(BIN)/python -m bench.life $(ARGS)

.PHONY: lint
lint: $(STAMP) ## check style, types, who may import whom, and that no code stands twice
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd sdk/python && $(abspath $(BIN))/mypy --strict --cache-dir ../../.mypy_cache -p sluice_client
	$(BIN)/lint-imports
	$(BIN)/python .ci/repeats.py api actors chains cli core devstack models scheduler bench
	$(BIN)/python .ci/words.py
	$(BIN)/python .ci/decisions.py

.PHONY: sdk
sdk: $(STAMP) ## write the client libraries and the Postman collection from the API's description
	$(BIN)/python -m sdk.generate

.PHONY: lock
lock: $(STAMP) ## pin what requirements*.in ask for, with hashes
	for part in requirements requirements-dev devstack/servers/npm; do \
		UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
			--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate $$part.in -o $$part.txt; \
	done

.PHONY: settings
settings: $(STAMP) ## write docs/settings.md and .env.example from the settings
	PYTHONPATH=. $(BIN)/python .ci/settings.py

.PHONY: watching
watching: $(STAMP) ## write ops/alerts.yml and ops/dashboard.json from the table of alerts
	PYTHONPATH=. $(BIN)/python .ci/watching.py

.PHONY: help
help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): requirements.txt requirements-dev.txt .python-version Makefile
	@if [ -z "$(PYTHON)" ]; then echo "Sluice needs Python 3.11, 3.12 or 3.13 with venv (Debian: python3-venv)" >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)
	@# uv takes two seconds where pip takes twenty. pip does it where uv does not run, or knows no index that pip knows.
	$(BIN)/python -m pip $(PIP) -r <(sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.txt)
	$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --require-hashes $(PINS) || \
		$(BIN)/python -m pip $(PIP) $(PINS)
	@# All cores compile, where pip has one; like it, past a file that is for another Python.
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib actors api chains cli core devstack models scheduler || true
	@# The packages of this folder, and the command, without a build.
	@pwd > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/sluice.pth"
	@printf '#!/bin/sh\nexec "$$(dirname "$$0")/python" -P -m cli "$$@"\n' > $(BIN)/sluice
	@chmod +x $(BIN)/sluice
	@touch $(STAMP)

.DEFAULT_GOAL := help
.PHONY: help setup check test test-long lint format types lock openapi

BIN := .venv/bin
COMPILE := uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
	--no-header --no-emit-index-url pyproject.toml

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv from the locks, with this tree installed in it
	bash .ci/run setup

check: ## the whole truth: everything that must hold before a merge
	bash .ci/run

test: ## all tests but the long ones, on two processes; those of the clock alone
	bash .ci/run tests clock

test-long: ## the tests that take minutes, and random ones with their full counts
	$(BIN)/pytest -m long
	TOLLHOUSE_STEPS=20000 TOLLHOUSE_ROUNDS=1000 $(BIN)/pytest -o faulthandler_timeout=0 \
		tests/policies/test_state_machine.py tests/policies/test_races.py
	TOLLHOUSE_LEDGER_STEPS=20000 $(BIN)/pytest -o faulthandler_timeout=0 \
		tests/ledger/test_state_machine.py
	TOLLHOUSE_CASES=10000 $(BIN)/pytest -o faulthandler_timeout=0 tests/contract/test_schemathesis.py
	TOLLHOUSE_SEEDS=100 TOLLHOUSE_KILLS=1000 $(BIN)/pytest -o faulthandler_timeout=0 \
		tests/ledger/test_stampede.py tests/faults/test_many_kills.py

lint: ## style, direction of imports, rules of the house, locks
	bash .ci/run style imports rules locks

format: ## write the code the one way
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: ## pyright, strict
	$(BIN)/pyright

lock: ## resolve requirements/*.txt anew; versions that still fit stay
	$(COMPILE) --output-file requirements/runtime.txt
	$(COMPILE) --group dev --constraint requirements/runtime.txt --output-file requirements/dev.txt

openapi: ## write docs/openapi.json from the types
	$(BIN)/python -m tollhouse.contract.openapi > docs/openapi.json

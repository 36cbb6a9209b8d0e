.DEFAULT_GOAL := help
# A process that starts without compiled files compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help setup check affected test nightly status mass corpus test-long simulation kills soak overload plots test-alerts test-hostile test-availability test-outages test-upgrades test-cells test-clients test-vllm fuzz mutants bench bench-console console pictures lint format types lock lock-sdks lock-peers lock-clients reference docs notice sbom openapi

BIN := .venv/bin
LONG := $(BIN)/pytest -o faulthandler_timeout=0
# Runs a command and appends its result to docs/evidence/long-runs.jsonl.
RECORD := $(BIN)/python -m tools.long_runs run
AVAILABILITY := TOLLHOUSE_AVAILABILITY_ROUNDS=3 $(LONG) -n0 tests/availability
CELLS := TOLLHOUSE_CELL_ORGANIZATIONS=50 TOLLHOUSE_CELL_MOVES=10 TOLLHOUSE_CELL_KILLS=12 \
	TOLLHOUSE_CELL_UNDONE=9 $(LONG) -n0 tests/cells/test_drill.py
HOSTILE := TOLLHOUSE_STALLED_READERS=1000 $(LONG) tests/hostile
UPGRADES := TOLLHOUSE_UPGRADE_REQUESTS=500 TOLLHOUSE_RESTORE_REQUESTS=500 \
	$(LONG) tests/upgrades
BENCH := PYTHONPATH=src:. $(BIN)/python -m bench
# A version that was published in the last 7 days is not locked: a stolen one may not be known yet.
COMPILE := uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
	--no-header --no-emit-index-url --exclude-newer "7 days"
NPM_LOCK := npm install --silent --ignore-scripts --package-lock-only --min-release-age 7

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv from the locks, with this tree installed in it, and build console and docs
	bash .ci/run setup console_files docs

check: ## the landing check: what must hold before a merge, in 15 minutes
	bash .ci/run

affected: ## tests that run the lines changed since origin/main, style, types and rules: a minute
	@$(BIN)/python -m tools.affected

test: ## all tests but those of the night; those of the clock alone
	bash .ci/run tests clock

nightly: ## what takes hours, each part recorded; PART="cells mutants" for some of them
	bash .ci/run nightly $(PART)

status: ## when each nightly part was last green, and what has changed since
	@$(BIN)/python -m tools.nightly status

mass: ## what each package weighs, and whether a number is above tools/mass.json
	@$(BIN)/python -m tools.mass

test-long: ## random tests with their full counts, recorded: hours
	$(RECORD) TOLLHOUSE_STEPS=20000 TOLLHOUSE_ROUNDS=1000 $(LONG) \
		tests/policies/test_state_machine.py tests/policies/test_races.py
	$(RECORD) TOLLHOUSE_ROUNDS=200 $(LONG) tests/identity/test_revocation.py
	$(RECORD) TOLLHOUSE_SCANNED_STRINGS=1000000 $(LONG) tests/identity/test_scanning.py
	$(RECORD) TOLLHOUSE_HOSTILE_TEXTS=30 $(LONG) tests/identity/test_hostile_text.py
	$(RECORD) TOLLHOUSE_SIMILAR_KEYS=1000000 $(LONG) tests/identity/test_common_beginnings.py
	$(RECORD) TOLLHOUSE_TIMED_KEYS=1000000 TOLLHOUSE_FOREIGN_TIMINGS=1000 $(LONG) tests/identity/test_timing.py
	$(RECORD) TOLLHOUSE_TIMED_PROMPTS=500 $(LONG) tests/tenancy/test_cache_timing.py
	$(RECORD) TOLLHOUSE_CASES=10000 $(LONG) tests/contract/test_schemathesis.py
	$(RECORD) TOLLHOUSE_SEEDS=100 $(LONG) tests/ledger/test_stampede.py
	$(RECORD) TOLLHOUSE_EVENTS=1000000 $(LONG) tests/reports/test_reports_equal_entries.py
	$(RECORD) TOLLHOUSE_EXAMPLES=2000 $(LONG) tests/ledger/test_bounds.py
	$(RECORD) TOLLHOUSE_EXAMPLES=5000 $(LONG) tests/inference/test_response_interleavings.py
	$(RECORD) TOLLHOUSE_LEDGER_STEPS=20000 $(LONG) tests/ledger/test_state_machine.py
	$(RECORD) TOLLHOUSE_LEDGER_ITEMS=10000 $(LONG) tests/ledger/test_one_and_batch.py
	$(RECORD) TOLLHOUSE_FUZZ_SECONDS=900 $(LONG) tests/fuzz
	$(RECORD) $(UPGRADES)
	$(RECORD) $(AVAILABILITY)
	$(RECORD) $(CELLS)
	$(RECORD) TOLLHOUSE_FAULTS=10000 $(LONG) \
		tests/backends/test_transport.py tests/faults/test_upstream_faults.py
	$(RECORD) TOLLHOUSE_DISCONNECTS=1000 $(LONG) tests/faults/test_disconnects.py
	$(RECORD) TOLLHOUSE_STAMPEDES=100 $(LONG) tests/faults/test_stampede.py
	$(RECORD) TOLLHOUSE_JOINED_REQUESTS=900 $(LONG) tests/faults/test_backend_log.py
	$(RECORD) TOLLHOUSE_STREAMS=500 $(LONG) tests/faults/test_open_streams.py
	$(RECORD) TOLLHOUSE_KILLS=1000 $(LONG) tests/faults/test_many_kills.py
	$(RECORD) TOLLHOUSE_KILLS=1000 $(BIN)/python -m tests.endurance kills
	$(RECORD) TOLLHOUSE_SOAK_MINUTES=60 $(BIN)/python -m tests.endurance soak
	$(RECORD) TOLLHOUSE_ALERTS=1000 $(LONG) tests/alerts/test_exactly_once.py
	$(RECORD) TOLLHOUSE_ARCHIVE_ROUNDS=100 $(LONG) tests/archive/test_killed.py
	$(RECORD) TOLLHOUSE_EXPORT_EVENTS=1000000 $(LONG) tests/reports/test_exports_equal_ledger.py
	$(RECORD) TOLLHOUSE_JUDGE_FAULTS=10000 $(LONG) tests/faults/test_judge_faults.py
	$(RECORD) TOLLHOUSE_STREAMS=2000 $(LONG) tests/evaluation/test_buffered_streams.py
	$(RECORD) TOLLHOUSE_SIMULATION_SEEDS=10000 TOLLHOUSE_SIMULATION_EVERY=1 $(LONG) tests/simulation
	$(RECORD) $(HOSTILE)

corpus: ## replay 3,200 recorded requests, and print what callers, engines, ledger or records see otherwise
	$(BIN)/python -m tests.corpus compare

simulation: ## 10,000 more seeds of the simulation, recorded, and every interruption of its scenarios
	$(BIN)/python -m tests.simulation run --seeds 10000 --processes 2 --record
	$(BIN)/python -m tests.simulation exhaust --record

kills: ## kill -9 of 1,000 workers under load, in rounds of 100; goes on where it was interrupted
	TOLLHOUSE_KILLS=$(or $(TOLLHOUSE_KILLS),1000) $(BIN)/python -m tests.endurance kills

soak: ## an hour of mixed traffic at half of capacity, with restarts of Redis, engine and PostgreSQL
	TOLLHOUSE_SOAK_MINUTES=$(or $(TOLLHOUSE_SOAK_MINUTES),60) $(BIN)/python -m tests.endurance soak

overload: ## ten minutes with 5 times the requests that a worker can handle, recorded minute by minute
	$(BENCH).overload --json --seconds 60 --rounds $(or $(TOLLHOUSE_OVERLOAD_MINUTES),10) \
		--record docs/evidence/overload.jsonl

plots: ## draw the recorded runs of kills, soak, overload and outages into docs/availability.md
	$(BIN)/python -m tests.endurance plots
	$(BIN)/python -m tests.outages.results

test-alerts: ## 1,000 alerts to a receiver that fails half the time, workers killed in between
	TOLLHOUSE_ALERTS=1000 $(LONG) -n0 tests/alerts/test_exactly_once.py

test-hostile: ## callers that attack: stalled and slow ones, bombs, floods; a thousand stalled readers
	$(HOSTILE)

test-availability: ## machines with PostgreSQL killed, frozen and cut off, three rounds, into docs/availability.md
	bash .ci/run cluster_programs
	rm -f docs/evidence/availability.jsonl
	TOLLHOUSE_AVAILABILITY_RESULTS=docs/evidence/availability.jsonl $(AVAILABILITY)
	$(BIN)/python -m tests.availability.results

test-outages: ## 13 faults of a provider in all layouts, 30 s each, recorded; goes on where it was interrupted
	TOLLHOUSE_OUTAGE_CELLS=all TOLLHOUSE_OUTAGE_SECONDS=30 $(LONG) tests/outages

test-upgrades: ## a rolling upgrade to a rehearsed revision and back, a restore, both under load, and killed migrations
	$(UPGRADES)

test-cells: ## two cells behind nginx and Envoy: 50 organizations, 10 moves killed at each step, a cell lost
	$(CELLS)

fuzz: ## look 15 minutes in each parser for inputs that break it, keep inputs that reach new code: 90 minutes
	$(BIN)/python -m tests.fuzz --seconds 900 --keep

test-clients: ## tests with eleven real clients (1.9 GB, installed once), four generated ones and two linters; writes docs/clients.md
	$(BIN)/python -m tools.clients
	$(BIN)/python -m tools.sdks
	status=0; $(LONG) -n0 -m clients -o junit_family=xunit1 --junitxml=build/clients.xml tests/clients || status=$$?; \
		$(BIN)/python -m tools.client_matrix build/clients.xml && exit $$status

test-vllm: ## tests with vLLM on CPU, which is installed once: 3.4 GB
	$(BIN)/python -m tools.vllm
	$(LONG) -m vllm

mutants: ## change the source at 300 places, one at a time, and list what no test notices: an hour
	MUTANTS="$(or $(MUTANTS),--seed 1 --count 300 --json)" bash .ci/run sample_mutants

bench: ## measure with every command in bench/, one JSON object each
	$(BIN)/python -m compileall -q src tests bench
	set -e; for command in $(patsubst bench/%.py,%,$(wildcard bench/*.py)); do \
		echo "== $$command"; $(BENCH).$$command --json; done

bench-console: ## time the console's pages with a large organization, in Chromium
	bash .ci/run console times

console: ## check the web console and build it into the package
	bash .ci/run console

pictures: ## take the pictures of the console that its guide shows
	mkdir -p docs/images/console
	TOLLHOUSE_PICTURES=$(CURDIR)/docs/images/console bash .ci/run pictures

lint: ## style, direction of imports, rules of the house, locks
	bash .ci/run style imports rules locks

format: ## write the code the one way
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: ## pyright, strict
	$(BIN)/pyright

lock: ## resolve requirements/*.txt anew; versions that still fit stay
	$(COMPILE) pyproject.toml --output-file requirements/runtime.txt
	$(COMPILE) pyproject.toml --group dev --constraint requirements/runtime.txt --output-file requirements/dev.txt
	$(COMPILE) pyproject.toml --extra archive --extra import --extra otel --constraint requirements/dev.txt \
		--output-file requirements/image.txt

lock-sdks: ## resolve the SDKs in requirements/sdks anew
	set -e; for lock in requirements/sdks/*.txt; do sdk=$$(basename $$lock .txt); \
		echo "$${sdk%-*}==$${sdk##*-}" | $(COMPILE) --output-file $$lock -; done

lock-peers: ## resolve the gateways that bench.peers measures, and Patroni, anew
	set -e; for pin in requirements/peers/*.in requirements/cluster/*.in; do \
		$(COMPILE) --output-file $${pin%.in}.txt $$pin; done
	$(NPM_LOCK) --prefix requirements/peers/portkey

lock-clients: ## resolve the clients in requirements/clients anew
	set -e; for pin in requirements/clients/*/requirements.in; do \
		$(COMPILE) --output-file $${pin%.in}.txt $$pin; done
	set -e; for package in requirements/clients/*/package.json; do \
		$(NPM_LOCK) --prefix $$(dirname $$package); done

reference: ## write docs/reference and docs/llms.txt from the program
	$(BIN)/python -m tools.reference

docs: ## build the documentation as a site, into build/site and into the package
	bash .ci/run docs

notice: ## write NOTICE, with the licences of what the wheel contains
	$(BIN)/python -m tools.notice

sbom: ## write what the package is made of to build/sbom.json
	mkdir -p build && $(BIN)/python -m tools.sbom > build/sbom.json

openapi: ## write docs/openapi.json from the types
	$(BIN)/python -m tollhouse.contract.openapi > docs/openapi.json

# Only Python 3.10 to 3.14 and make are presupposed; everything else is fetched, once.
PYTHON ?= python3
# Each worker has a broker and a Spark session of its own, about 3 GB. Tests wait for processes that
# they kill and start, so two cores serve three workers.
WORKERS ?= 3
BIN := .venv/bin
# Some machines forbid it: then each of the many processes of the tests would compile all modules.
unexport PYTHONDONTWRITEBYTECODE
READERS := build/readers
UV_LOCK := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.10 \
	--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-cdc fuzz wheel-demo test test-all test-bundle test-report test-slice test-stores browser check bench bench-aggregate bench-cluster bench-decode bench-endurance bench-fixed bench-index bench-latency bench-longrun bench-opening bench-partitions bench-store bench-upsert json-suite torture torture-cluster torture-store torture-alerts torture-totals torture-upserts torture-sinks soak databricks-cli stores lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

setup: ## Create .venv with the locked packages, a Java where none is, and the jars
	@$(PYTHON) tools/setup.py

demo: setup ## A broker, two pipelines, a killed driver, and the proof that nothing was lost
	@$(BIN)/rivermouth demo

demo-cdc: setup ## A table of PostgreSQL by Debezium, three kills, and a comparison: CHANGES=n ROWS=n SEED=s
	@$(BIN)/python -m tests.cdc.demo $(if $(CHANGES),--changes $(CHANGES)) $(if $(ROWS),--rows $(ROWS)) \
		$(if $(KILLS),--kills $(KILLS)) $(if $(DRAINS),--drains $(DRAINS)) $(if $(SEED),--seed $(SEED))

wheel-demo: setup ## Install the wheel where nothing else is, and run the demo: LOWEST=1 ON=python
	@$(BIN)/python tools/try_wheel.py $(if $(LOWEST),--lowest) $(if $(ON),--python $(ON))

test: setup ## The whole product on real parts, each kind of case once
	@$(BIN)/python -m pytest -n $(WORKERS) -m "not thorough" --durations=10

test-bundle: setup databricks-cli ## One target of the bundle with the real Databricks CLI
	@$(BIN)/python -m pytest -n $(WORKERS) -k prod tests/bundle

test-all: setup databricks-cli ## Every case: all kill points, modes, platforms, bundle targets
	@$(BIN)/python -m pytest -n $(WORKERS)

test-slice: setup databricks-cli ## One of twenty slices of what test-all has beyond test: SLICE=0 to 19
	@$(BIN)/python -m pytest -n $(WORKERS) --slice $(SLICE)

test-stores: setup stores ## The tests of object stores over versitygw and over Azurite; needs npm and node
	@for store in versitygw azurite; do \
		$(BIN)/python -m pytest -n $(WORKERS) --store $$store tests/stores || exit; done

test-report: setup browser ## The page of report in a real Chromium, and its pictures; needs npm and node
	@$(BIN)/python -m pytest tests/report

check: setup ## Lint, format, types and the rules of the house
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/unit/test_tidy.py tests/unit/test_short_run.py

torture: setup ## Kill real drivers, again and again: ROUNDS=n SEED=s
	@$(BIN)/python -m tests.faults.campaign --rounds $(or $(ROUNDS),1000) \
		--seed $(or $(SEED),1) $(if $(TALLY),--tally $(TALLY))

torture-store: setup ## The same with the tables in an object store that answers badly: ROUNDS=n SEED=s
	@$(BIN)/python -m tests.faults.campaign --store --rounds $(or $(ROUNDS),400) \
		--seed $(or $(SEED),45) $(if $(TALLY),--tally $(TALLY))

torture-cluster: setup ## The same on a Spark cluster that loses executors and workers: ROUNDS=n SEED=s
	@$(BIN)/python -m tests.faults.campaign --cluster --rounds $(or $(ROUNDS),270) \
		--seed $(or $(SEED),45) $(if $(TALLY),--tally $(TALLY))

torture-totals: setup ## The same for totals and first rows, with their records in memory: KILLS=n SEED=s
	@$(BIN)/python -m tests.faults.totals --kills $(or $(KILLS),300) --seed $(or $(SEED),1)

torture-upserts: setup ## Random changes by key, and four readers against a plain fold: CHANGES=n BATCHES=n SEED=s
	@test -d $(READERS) || $(BIN)/python -m pip install --quiet --target $(READERS) \
		duckdb==1.5.5 duckdb-extension-delta==1.5.5 'polars>=2.1'
	@$(BIN)/python -m tests.faults.upserts --readers $(READERS) --changes $(or $(CHANGES),1000000) \
		--batches $(or $(BATCHES),1000) --seed $(or $(SEED),1)

torture-sinks: setup ## The same for what is sent to topics and to a function: RECORDS=n SEED=s
	@$(BIN)/python -m tests.faults.sinks --records $(or $(RECORDS),100000) --seed $(or $(SEED),1)

torture-alerts: setup ## Kill a process that sends alerts, again and again: KILLS=n SEED=s
	@$(BIN)/python -m tests.faults.alarms --kills $(or $(KILLS),100) --seed $(or $(SEED),1)

soak: setup ## Many pipelines in one process for an hour, under faults: MINUTES=n SEED=s
	@$(BIN)/python -m tests.faults.soak --minutes $(or $(MINUTES),60) --seed $(or $(SEED),1) \
		$(if $(PICTURE),--picture $(PICTURE))

bench: setup ## Compare the append path with Delta's own streaming sink and with a plain loop
	@$(BIN)/python bench/append.py

bench-aggregate: setup ## Compare totals with a MERGE in foreachBatch, written by hand
	@$(BIN)/python bench/aggregate.py

bench-decode: setup ## Compare the strict JSON decoder with Spark's from_json
	@$(BIN)/python bench/decode.py --rounds $(or $(ROUNDS),5)

bench-endurance: setup ## What must not grow: with history, partitions, a bad record, rows
	@$(BIN)/python -m bench.endurance --rounds $(or $(ROUNDS),3) $(if $(ONLY),--only $(ONLY))

bench-longrun: setup ## Upserts with compaction beside them: BATCHES=n KEYS=n ROWS=n
	@$(BIN)/python bench/longrun.py --batches $(or $(BATCHES),10000) --keys $(or $(KEYS),10000) \
		--rows $(or $(ROWS),4000000)

bench-fixed: setup ## What a batch of one record costs, and a trigger with nothing to read
	@$(BIN)/python bench/fixed.py --rounds $(or $(ROUNDS),5)

bench-latency: setup ## From a record's timestamp to its commit, at a steady rate: SECONDS=n
	@$(BIN)/python bench/latency.py --rounds $(or $(ROUNDS),3) --seconds $(or $(SECONDS),40)

bench-index: setup ## What the index of a table by key costs: ROWS=n
	@$(BIN)/python bench/index.py --rows $(or $(ROWS),16000000)

bench-opening: setup ## What a run costs with nothing new, and from the command to its first commit
	@$(BIN)/python bench/opening.py --rounds $(or $(ROUNDS),5)

bench-partitions: setup ## Batches over 4, 200 and 2,000 partitions, beside Spark's own reading of them
	@$(BIN)/python bench/partitions.py --rounds $(or $(ROUNDS),2)

bench-cluster: setup ## One worker of a Spark cluster and two, of half a core each: ROUNDS=n
	@$(BIN)/python -m bench.cluster --rounds $(or $(ROUNDS),3) --share 0.5

bench-store: setup ## Requests and time of batches in an object store, at 0, 20 and 50 ms a request
	@$(BIN)/python -m bench.store --rounds $(or $(ROUNDS),3)

bench-upsert: setup ## Compare batches by key: small and large tables, appends, and what others do
	@$(BIN)/python bench/upsert.py --rounds $(or $(ROUNDS),3)

fuzz: setup ## Damaged records of every format, through writer and checker: RECORDS=n SEED=s
	@$(BIN)/python -m tests.unit.formats.fuzz --records $(or $(RECORDS),100000) \
		--seed $(or $(SEED),1)

json-suite: setup ## The public JSONTestSuite, through both decoders; needs npm and node
	@$(BIN)/python -m tests.unit.formats.public_suite

databricks-cli: setup ## Build the Databricks CLI for the bundle's tests, once
	@$(BIN)/python tools/databricks_cli/build.py >/dev/null

stores: setup ## Build versitygw and install Azurite for the tests of object stores, once
	@$(BIN)/python -m tests.stores.parts >/dev/null

browser: setup ## Fetch Chromium, Playwright and axe for the tests of the page, once
	@$(BIN)/python -m tests.report.parts >/dev/null

lock: setup ## Resolve all packages and jars anew and write the locks
	@$(BIN)/python -m pip install --quiet uv
	@$(UV_LOCK) --group build --output-file requirements/build.lock
	@$(UV_LOCK) --group java --output-file requirements/java.lock
	@$(UV_LOCK) --group go --output-file tools/databricks_cli/go.lock
	@$(UV_LOCK) --extra local --group dev --group build pyproject.toml \
		--output-file requirements/dev.lock
	@$(BIN)/python tools/lock_jars.py

clean: ## Remove .venv and what the tools left; the user's cache of jars stays
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

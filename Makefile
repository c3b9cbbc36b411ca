# Everything a newcomer types. Only `run` and `test` need to be known.
# Messages of the build go to standard error, so that `make -s run` prints the conversation alone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
PIP := $(if $(UV),VIRTUAL_ENV=$(CURDIR)/$(VENV) $(UV) pip install --quiet,$(BIN)/python -m pip install -qq --disable-pip-version-check)
DOMAIN ?= travel
# As many processes, and in the order, that tests/scheduling.py says; each has stores of its own.
PYTEST_ARGUMENTS ?= --numprocesses auto
SOAK_ARGUMENTS ?=
# A process that may not keep the code it compiled compiles all of it each time it starts: three seconds each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run up test test-unit test-times test-ten test-long goals check lint format types imports bench bench-peers bench-length bench-growth bench-listeners \
	bench-graphs bench-housekeeping bench-ratio bench-hurtful bench-waiting bench-workers docs screenshots faults faults-stops faults-interruptions faults-conversations faults-storm faults-idle \
	faults-poison faults-every-second faults-submissions faults-repairs soak soak-ten chaos fuzz audit audit-online bom lock clean

run: $(VENV)/.installed
	@exec $(BIN)/parley chat --domain $(DOMAIN)

up: $(VENV)/.installed
	@exec $(BIN)/parley up --domain $(DOMAIN)

test: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest $(PYTEST_ARGUMENTS)

# All of them, and note how long the files took: the next runs begin with the longest.
test-times: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest $(PYTEST_ARGUMENTS) --note-times

# Ten whole runs in a row, every second one beside processes that keep all cores busy; ends with the first red one.
REPEATED ?=
test-ten: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.repeated $(REPEATED)

# What needs no stores and no processes, so that one process for each core keeps all of them busy; without the
# evaluation of whole domains, which looks at hundreds of conversations.
UNIT_ARGUMENTS ?= --numprocesses $(shell nproc)
test-unit: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest $(UNIT_ARGUMENTS) --ignore=tests/unit/parley/evaluation tests/shape tests/unit

# Conversations of users with goals, in the held-out wordings: how many of each domain with each reader, from which
# seed on, and the folder where they are written down. An interrupted run goes on with what is missing there.
GOALS ?= 2300
GOALS_SEED ?= 0
GOALS_INTO ?= .tmp/goals
goals: $(VENV)/.installed-dev
	$(BIN)/python -m tests.goals --half held-out --conversations $(GOALS) --processes $(shell nproc) --into $(GOALS_INTO) --seed $(GOALS_SEED)

# The long forms of what `test` proves in short, one after another.
test-long: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -m slow

# 100,000 random texts of SQL and 20,000 of Python, checked; those approved are run and looked at.
fuzz: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -m slow -s tests/attacks/test_sql.py tests/attacks/test_python.py

check: lint types imports test

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.installed-dev
	$(BIN)/python -m pyright --pythonpath $(BIN)/python

imports: $(VENV)/.installed-dev
	$(BIN)/lint-imports

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.turns

# A closed loop and a drain in short, for CI: it fails when the whole agent costs far more than the hand-written task.
bench-ratio: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.turns --rounds 3 --turns 24 --queued 2 --only "by hand" travel --bar 3.5

bench-peers: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.peers

bench-graphs: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.graphs

bench-housekeeping: $(VENV)/.installed-dev
	$(BIN)/python -m tests.integration.internal.housekeeping_bench

bench-hurtful: $(VENV)/.installed-dev
	$(BIN)/python -m tests.integration.tools.hurtful_tools

bench-length: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.length

bench-growth: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.growth

bench-listeners: $(VENV)/.installed-dev
	$(BIN)/python -m tests.integration.observe.listeners_bench

bench-waiting: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.waiting

bench-workers: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.workers

docs: $(VENV)/.installed
	$(BIN)/python -m parley.settings_page

# The pictures of docs/inspector.md, from a real stack in a headless Chromium.
screenshots: $(VENV)/.installed-dev
	PARLEY_PICTURES=$(CURDIR)/docs/images $(BIN)/python -m pytest -q -m slow tests/browser/test_pictures.py

# The faults at the scale that is promised, with the defaults that ship; each form prints its figures and a verdict.
# All of them take an hour; one alone: `make faults-storm`, `faults-idle`, `faults-poison`, `faults-every-second`,
# `faults-submissions`, `faults-stops`, `faults-interruptions`, `faults-conversations`, `faults-repairs`.
LONG := $(BIN)/python -m pytest -q -m slow
CHAOS := tests/integration/chaos
faults: faults-stops faults-interruptions faults-conversations faults-storm faults-idle faults-poison faults-every-second \
	faults-submissions faults-repairs $(VENV)/.installed-dev
	$(LONG) $(CHAOS)/test_once_only.py $(CHAOS)/test_coming_and_going.py $(CHAOS)/test_killed_plan.py \
		tests/integration/internal/test_retention.py

faults-stops: $(VENV)/.installed-dev
	$(LONG) tests/unit/agent/test_stopped_turns.py $(CHAOS)/test_stopped_workers.py

faults-interruptions: $(VENV)/.installed-dev
	$(LONG) -s tests/integration/interruptions

faults-conversations: $(VENV)/.installed-dev
	$(LONG) -s tests/unit/parley/evaluation/test_shipped_faults.py

faults-storm: $(VENV)/.installed-dev
	$(LONG) $(CHAOS)/test_kill_storm.py

faults-idle: $(VENV)/.installed-dev
	$(LONG) $(CHAOS)/test_idle_survivors.py

faults-poison: $(VENV)/.installed-dev
	$(LONG) $(CHAOS)/test_poison.py

faults-every-second: $(VENV)/.installed-dev
	$(LONG) $(CHAOS)/every_second

faults-submissions: $(VENV)/.installed-dev
	$(LONG) $(CHAOS)/test_killed_submissions.py

# 500 broken sessions repaired through the console, and branches that book at the same moment, on real stores.
faults-repairs: $(VENV)/.installed-dev
	$(LONG) tests/integration/sessions

soak: $(VENV)/.installed
	@exec $(BIN)/parley soak $(SOAK_ARGUMENTS)

# Ten soaks, each with faults of its own; ends with the first that breaks a promise.
soak-ten: $(VENV)/.installed
	@for seed in 1 2 3 4 5 6 7 8 9 10; do \
		$(BIN)/parley soak --minutes 1 --seed $$seed $(SOAK_ARGUMENTS) || exit 1; \
	done; echo "Ten of ten kept every promise."

chaos: $(VENV)/.installed-dev
	$(BIN)/python -m pytest tests/integration -k workers

# Every pinned package against the stored list of known vulnerabilities: needs no network, and says how old the list is.
audit: $(VENV)/.installed-dev
	@$(BIN)/python deploy/audit.py

# The same with today's database on the network. What it does not know counts as not checked.
audit-online: .venv-audit/.installed
	@.venv-audit/bin/pip-audit --requirement constraints.txt --strict --no-deps --disable-pip --output .venv-audit/found; \
	code=$$?; cat .venv-audit/found 2>/dev/null; \
	if [ $$code -ne 0 ] && [ ! -s .venv-audit/found ]; then \
		echo "audit: not everything was checked: see above, and is the network there (HTTPS_PROXY?)." >&2; exit 2; \
	fi; exit $$code

# The bill of materials (CycloneDX) of what the image installs.
bom: .venv-audit/.installed
	@mkdir -p build
	@.venv-audit/bin/cyclonedx-py requirements deploy/locked.txt --pyproject pyproject.toml --output-reproducible \
		--output-file build/bom.json

# What the image installs, with the hashes of every file; renewed with constraints.txt.
lock:
	uv pip compile pyproject.toml --extra server --universal --python-version 3.11 --generate-hashes --quiet \
		--constraint constraints.txt --no-header --no-annotate --output-file deploy/locked.txt

.venv-audit/.installed:
	@$(if $(UV),$(UV) venv --quiet --clear --python $(PYTHON),$(PYTHON) -m venv --clear) .venv-audit
	@$(if $(UV),$(UV) pip install --quiet --python .venv-audit/bin/python,.venv-audit/bin/python -m pip install -qq --disable-pip-version-check) pip-audit==2.10.1 cyclonedx-bom==7.5.0 || { \
		echo "The tools cannot be installed without the network (HTTPS_PROXY?); nothing was checked." >&2; exit 2; }
	@touch $@

clean:
	rm -rf $(VENV) .venv-* build dist *.egg-info .ruff_cache .hypothesis

$(VENV)/.created:
	@echo "Creating $(VENV) with $$($(PYTHON) --version)." >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	@$(if $(UV),$(UV) venv --quiet --clear --python $(PYTHON) $(VENV),$(PYTHON) -m venv --clear $(VENV)) >&2
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing Parley; this takes a minute or two the first time." >&2
	@$(PIP) --constraint constraints.txt --editable '.[all]' >&2
	@$(BIN)/parley domain train $(DOMAIN) --into $(VENV)/share/parley/trained >&2
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Installing what the tests need." >&2
	@$(PIP) --constraint constraints.txt --editable '.[dev]' >&2
	@touch $@

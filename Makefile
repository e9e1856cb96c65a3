# Every target installs what it needs; a fresh clone needs make, git and Python 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
CORE_READY := $(VENV)/.core-ready
DEMO_READY := $(VENV)/.demo-ready
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench-ready
NODE := tests/server/node
NODE_READY := $(NODE)/node_modules/.ready
DOCUMENTS = $(wildcard README*.md CONTRIBUTING.md docs/*.md benches/README.md evals/README.md)
# Each file runs in one worker, so a server or the namespace of a document is set up once. Three workers for two cores, because tests
# wait a third of their time for processes, sockets and time limits.
PYTEST := $(BIN)/pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --durations 10 --durations-min 5
COG := $(BIN)/cog -I docs -I .
CATALOGUES := $(wildcard src/taiwa/locale/*/LC_MESSAGES/*.po)
MESSAGES := $(CATALOGUES:.po=.mo)
BABEL := --no-location --no-wrap --sort-output --keyword=gettext_noop --keyword=sentence
EXPLORE_SECONDS ?= 600
# Keep bytecode even if the environment disables it: compiling again costs each test worker seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test explore explore-clients check house bench docs messages lock clean
.DELETE_ON_ERROR:

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{ printf "  make %-15s %s\n", $$1, $$2 }'

setup: $(READY) $(MESSAGES) ## make the virtual environment .venv (again only when its inputs change)

# The package alone is enough for `make demo`; the development tools are added to the same environment later.
# pip is pinned too, so that every machine resolves the same versions; hatchling builds without a second, unpinned
# download (--no-build-isolation). Bytecode is written on first use: most modules of numpy are never imported.
$(CORE_READY): pyproject.toml constraints.txt hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "taiwa needs Python 3.11 or newer, and '$(PYTHON)' is not: try  make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "'$(PYTHON) -m venv' failed: on Debian, install the package python3-venv, then run make again" >&2; exit 1; }
	$(PIP) install --no-compile --constraint constraints.txt pip hatchling editables babel
	$(PIP) install --no-compile --constraint constraints.txt --no-build-isolation --editable .
	@touch $@

$(READY): $(CORE_READY)
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

$(BENCH_READY): $(READY)
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[dev,bench]'
	@touch $@

# JavaScript clients for the tests of the server. Without npm these tests are skipped, and fail on CI.
$(NODE_READY): $(NODE)/package-lock.json
	@if command -v npm >/dev/null; then \
	  npm ci --prefix $(NODE) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null && touch $@; fi

# llama.cpp beside the core, and a model of 1.1 GB; where neither can be fetched, what needs no model is shown.
$(DEMO_READY): $(CORE_READY)
	-$(PIP) install --no-compile --constraint constraints.txt --no-build-isolation --editable '.[gguf]'
	@touch $@

demo: $(DEMO_READY) $(MESSAGES) ## fetch a small model once, and watch it: state, tools, types, documents
	@$(BIN)/python -m taiwa demo --fetch

# The examples of Hypothesis are the same in every run (conftest.py).
# A real model of 98 MB, fetched once; without it, its tests are skipped and say so.
test: setup $(NODE_READY) ## run every test, the documents' examples included
	@command -v chromium-headless-shell chromium >/dev/null || \
	  echo 'no browser: tests of the page are skipped; on Debian: apt-get install chromium-headless-shell fonts-noto-cjk'
	@$(BIN)/python -m taiwa models pull smollm2-135m || true
	@$(PYTEST)

explore: setup ## run the fuzzers and property tests for EXPLORE_SECONDS (600), each round with a fresh seed
	@$(BIN)/python -m tests.explore --seconds $(EXPLORE_SECONDS)

# Not part of `make test`: each client brings up to hundreds of packages, with pins that contradict ours.
explore-clients: setup ## run clients of others against a server, each installed on its own (CLIENTS="dspy strands", all without it)
	@$(BIN)/python -m tests.clients $(CLIENTS)

check: setup ## lint, types, layers, dependencies, budgets, documents (changes nothing)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry .
	$(COG) --check --diff $(DOCUMENTS)
	$(BIN)/towncrier build --draft --version next >/dev/null

house: setup ## print the figures of the code: its size, import cycles, and what commands load and cost
	@$(BIN)/python -m tests.house.figures

bench: $(BENCH_READY) ## run the benchmarks with their peers and write benches/results
	@$(BIN)/python -m benches

docs: setup ## record the sessions again, and write the generated parts of the documents
	$(BIN)/python docs/record.py
	$(COG) -r $(DOCUMENTS)

%.mo: %.po | $(CORE_READY)
	$(BIN)/pybabel --quiet compile --input-file $< --output-file $@

messages: setup ## update the catalogues in src/taiwa/locale from the texts in the code
	mkdir -p build
	$(BIN)/pybabel --quiet extract $(BABEL) --output build/cli.pot src/taiwa/apps src/taiwa/cli src/taiwa/operations
	$(BIN)/pybabel --quiet extract $(BABEL) --output build/dialogue.pot src/taiwa/flows src/taiwa/models
	$(BIN)/pybabel --quiet extract $(BABEL) --mapping-file babel.cfg --keyword=_count:1,2 --output build/page.pot src/taiwa/server/page
	$(BIN)/pybabel --quiet extract --no-location --no-wrap --omit-header --no-default-keywords --keyword=Wording --output build/library.pot src/taiwa
	cat build/library.pot >> build/page.pot
	for domain in cli dialogue page; do $(BIN)/pybabel --quiet update --domain $$domain --input-file build/$$domain.pot \
	  --output-dir src/taiwa/locale --no-wrap --no-fuzzy-matching --ignore-obsolete --ignore-pot-creation-date; done

# Not after setup: pins that contradict pyproject.toml are what this mends.
lock: ## resolve every dependency anew and write constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip hatchling editables babel
	$(BIN)/python .ci/lock.py > constraints.new
	mv constraints.new constraints.txt

clean: ## remove the virtual environment and every cache
	rm -rf $(VENV) $(NODE)/node_modules dist build .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

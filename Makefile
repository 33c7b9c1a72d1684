# Everything sets itself up: a virtual environment in .venv with the versions of constraints.txt. The demo needs little
# of it (.venv/ready); tests and documents need every package that we work with (.venv/dev).
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check format results docs clean

demo: .venv/ready
	$(BIN)/autoweight demo

test: check
	$(BIN)/pytest -n auto

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/dev
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build

results: .venv/ready
	$(BIN)/python benchmarks/results.py

clean:
	rm -rf .venv docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[cli]'
	touch $@

.venv/dev: .venv/ready
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

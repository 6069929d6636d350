# Two commands set everything up: make demo, make test. They share one environment, .venv.
PYTHON ?= python3
VENV ?= .venv
# More arguments for pip, for example a smaller build of torch for machines without a GPU:
#   make demo PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"
PIP_ARGS ?=

# Files of tests are shared out in their own order: the long ones are not all at its end.
PYTEST := python -m pytest --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

export PATH := $(abspath $(VENV))/bin:$(PATH)
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := true

.PHONY: demo test test-fast bench lint format clean

demo: $(VENV)/installed  ## Fine-tune a real encoder at two overlaps, score it with lm_eval, report
	examples/demo.sh

test: $(VENV)/installed  ## The whole suite
	$(PYTEST)

test-fast: $(VENV)/installed  ## All but the end-to-end tests
	$(PYTEST) -m "not slow"

bench: $(VENV)/installed  ## Ours beside its peers, into docs/performance.md (needs idle cores)
	@python -c 'import faiss' 2>/dev/null || echo "without faiss, a peer of the retrieval: have it by $(VENV)/bin/pip install --editable '.[bench]'"
	python -m benchmarks --output docs/performance.md

lint: $(VENV)/installed  ## Format, lint and type checks
	ruff format --check .
	ruff check .
	mypy style_overlap

format: $(VENV)/installed  ## Put everything into the house format
	ruff format .
	ruff check --fix .

clean:  ## Remove the environment and what the demo made
	rm -rf $(VENV) demo-output

$(VENV)/installed: pyproject.toml constraints.txt bridge/style_overlap_bridge.py
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or newer is needed, this is " + sys.version.split()[0] + ": make PYTHON=/path/to/python3") if sys.version_info < (3, 10) else None'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (a few minutes the first time) ..."
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) --constraint constraints.txt --editable ".[dev]"
	touch $@

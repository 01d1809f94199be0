# make bench, make test and make lint set up what they need: Python 3.11 to 3.15 and make are enough.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.13 python3.14 python3.15 python3.12 python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 16))' >/dev/null 2>&1 && echo $$p && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

WORKERS ?= 2

# The packages for GPUs are installed only where there is a driver: those of its CUDA, cu12 or cu13.
DRIVER = $(shell $(PYTHON) -c 'import ctypes; found = ctypes.c_int(0); \
	ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(found)); \
	print("cu13" if found.value >= 13000 else "cu12")' 2>/dev/null)

# Where all packages for a GPU are installed already, as on a machine without a network, that Python runs them.
GPU_PACKAGES := numpy, llvmlite, numba, rich, typer, cuda.core, cuda.bindings, scipy, mpmath, hypothesis, pytest, xdist, \
	pytest_timeout, sklearn, matplotlib, PIL, threadpoolctl
READY = $(if $(DRIVER),$(shell for p in $(BIN)/python $(PYTHON) python3 python; do \
	$$p -c 'import $(GPU_PACKAGES)' >/dev/null 2>&1 && echo $$p && break; done))
ON_GPU = python="$(READY)"; if [ -z "$$python" ]; then python=$(BIN)/python; $(MAKE) --no-print-directory \
	$(VENV)/.test $(if $(DRIVER),$(VENV)/.gpu) || exit 1; fi; $$python

MINUTES ?= 30

.PHONY: help bench bench-cluster npbench cold results docs site fuzz strangers test test-gpu bench-gpu bench-host lint house clean
.DEFAULT_GOAL := help

help:
	@echo "make bench   install, then compare with NumPy, numba and C (about two minutes)"
	@echo "make npbench NPBENCH=PATH   the programs of a checkout of NPBench, unmodified, beside NumPy, numba and others"
	@echo "make cold    imports, first calls and small calls in fresh processes"
	@echo "make results measure sizes M and L on a quiet machine, update README.md and benchmarks/results"
	@echo "make test    install, then run the tests"
	@echo "make test-gpu   the tests on a GPU, bit for bit against the emulator; reports in benchmarks/results"
	@echo "make bench-gpu  times, bytes and flops on a GPU, beside CuPy, JAX, PyTorch and numba where installed"
	@echo "make bench-host  host time of calls on devices, over a driver that returns at once; needs no GPU"
	@echo "make bench-cluster   twelve programs on a Dask cluster, beside dask.array and map_blocks with numba"
	@echo "make docs    write docs/numpy.md (which NumPy functions are native) and docs/troubleshooting.md"
	@echo "make site    the documents as a site, in build/site"
	@echo "make fuzz    random programs against Python, for MINUTES=30"
	@echo "make strangers  the suites of other packages with every function accelerated; PACKAGES=\"PyWavelets=pywt toolz\""
	@echo "make lint    layers of packages, formatting, lint, types"
	@echo "make house   measures of the structure of the package; ARGS=--slow also of compiling, ARGS=--circles import circles"
	@echo "make clean   remove the environment and all caches of this folder"

bench: $(VENV)/.bench
	@$(BIN)/parakeet bench $(ARGS)

npbench: $(VENV)/.bench
	@if [ -z "$(NPBENCH)" ]; then echo "set NPBENCH= to a checkout of https://github.com/spcl/npbench" >&2; exit 2; fi
	@$(BIN)/parakeet bench --npbench "$(NPBENCH)" --json build/npbench.json $(ARGS)

cold: $(VENV)/.bench
	@$(BIN)/parakeet bench --cold $(ARGS)

results: $(VENV)/.bench
	@$(BIN)/parakeet bench --readme README.md --json benchmarks/results/M.json \
		--plot benchmarks/results/M.png --plot benchmarks/results/M.html $(ARGS)
	@$(BIN)/parakeet bench --size L --budget 400 --json benchmarks/results/L.json \
		--plot benchmarks/results/L.png --plot benchmarks/results/L.html $(ARGS)

test: $(VENV)/.test
	@$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

docs: $(VENV)/.test
	@$(BIN)/python -m tests.numpy_table --page
	@$(BIN)/parakeet messages --markdown > docs/troubleshooting.md

site: $(VENV)/bin/python
	@$(PIP) install -e '.[site]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && \
		echo "build/site/index.html; with the search: python -m http.server --directory build/site"

test-gpu:
	@$(ON_GPU) -m tests.gpu $(ARGS)

bench-gpu:
	@$(ON_GPU) -m parakeet_py bench-gpu --out benchmarks/results $(ARGS)

bench-host: $(VENV)/.test
	@PARAKEET_WHEN=now $(BIN)/python -m tests.driver.host_time $(ARGS)

fuzz: $(VENV)/.test
	@$(BIN)/python -m tests.property.fuzz --minutes $(MINUTES) $(ARGS)

bench-cluster: $(VENV)/.test
	@$(BIN)/python -m parakeet_py.bench.on_dask.compare $(ARGS)

strangers: $(VENV)/.test
	@$(BIN)/python -m tests.strangers $(PACKAGES) $(ARGS)

lint: $(VENV)/.test
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@MYPYPATH=examples $(BIN)/mypy --strict examples tests/typing
	@$(BIN)/python scripts/readme_blocks.py build/readme.py && $(BIN)/mypy --strict --allow-untyped-defs build/readme.py

$(VENV)/bin/python:
	@if [ -z "$(PYTHON)" ]; then echo "no Python 3.11 to 3.15 found; set PYTHON=..." >&2; exit 1; fi
	@echo "making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	@echo "installing parakeet-py[bench]"
	@$(PIP) install -e '.[bench]'
	@$(BIN)/parakeet prepare >/dev/null
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	@echo "installing parakeet-py[bench,test,dev]"
	@$(PIP) install -e '.[bench,test,dev]'
	@$(BIN)/parakeet prepare >/dev/null
	@touch $@ $(VENV)/.bench

$(VENV)/.gpu: pyproject.toml | $(VENV)/bin/python
	@echo "installing parakeet-py[$(DRIVER),bench,test]"
	@$(PIP) install -e '.[$(DRIVER),bench,test]'
	@touch $@

house: $(VENV)/.test
	@$(BIN)/python scripts/house.py $(ARGS)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

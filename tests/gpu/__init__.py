"""What runs on a real GPU: `make test-gpu`.

`python -m tests.gpu` runs the program corpus and the property tests on `cuda:0`. Every kernel runs twice, on the GPU
and on the emulator, from the same PTX; all memory it can reach is compared afterwards (`twin`), and what a call gives
is compared with plain Python as in all other tests. `--rehearse` does the same without a GPU: CUDA's packages are the
stand-in of the unit tests.
"""

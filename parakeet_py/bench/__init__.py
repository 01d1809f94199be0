"""The benchmark: what a user's plain NumPy costs, and what each way of speeding it up makes of it.

    program.py    one benchmark program: its source, its inputs by size, its variants for the peers
    programs/     the programs, each a module that a NumPy user could have written
    c/            hand-written C for some of them: the practical limit of the machine
    peers.py      the implementations that are compared: NumPy, parakeet_py, numba, jax, C
    compare.py    is this result NumPy's result
    runner.py     interleaved measurement of all implementations in one process
    cold.py       import time, first calls, small calls and small functions in fresh processes
    npbench/       the programs of a checkout of NPBench, which is not part of this package
    report.py, plot.py, files.py    table, README section, plots; JSON, PNG and HTML

Nothing here is imported by the compiler.
"""

"""NumPy's functions, each with the ways to call it, held against NumPy.

`families/` lists the functions, a line each: the name, the argument lists to try, the dtypes. `rows` turns a line into
calls on arrays of every dtype, rank and layout, `compare` runs one call through the compiler and NumPy and compares
all a caller can see, `page` writes `docs/numpy.md` from what was found.

    python -m tests.numpy_table --full np.sum     every combination for one function (or family, or part of a name)
    python -m tests.numpy_table --page            docs/numpy.md (`make docs`)

The suite runs a small sample on the interpreter of the typed IR, which costs a hundredth of compiling to machine code.
"""

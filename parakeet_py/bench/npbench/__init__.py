"""NPBench's programs, unmodified, beside NumPy and the systems that NPBench has sources for.

    checkout.py    programs and their variants in a checkout of NPBench, which the caller has
    systems.py     how each system makes a program callable
    child.py       one program on one system, in a process of its own, NumPy beside it in turns
    runner.py      all programs and systems, within a budget
    report.py      table, JSON, Markdown

NPBench (https://github.com/spcl/npbench) is not part of this package, and nothing of it is copied.
"""

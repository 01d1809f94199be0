"""What messages about refusals have in common: a code, a hint that works, an example; the catalogue has them all.

The places that refuse something say what they have met, with the names and types of the program. The catalogue knows
the forms that these texts take, and adds to each what to do; `UnsupportedError` looks its text up when it is shown.
From the same table come the page docs/troubleshooting.md (`make docs`), `parakeet messages`, and the tests: each
example has to give its message, and what stands beside it has to be compiled.

Three words have one meaning each in all texts:

compiled     runs as machine code
handed back  one operation or call of a compiled function is done by Python
fell back    a function runs in Python as a whole, for the arguments at hand
"""

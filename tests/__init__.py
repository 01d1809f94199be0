"""The tests of parakeet_py: one corpus of small programs for every backend, unit tests, property tests."""

import os

# Tests are about compiled code: it is made at the first call, whatever would pay.
os.environ.setdefault("PARAKEET_WHEN", "now")

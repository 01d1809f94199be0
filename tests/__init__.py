"""The tests of parakeet_py: one corpus of small programs for every backend, unit tests, property tests."""

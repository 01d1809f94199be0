"""parakeet_py: one decorator that makes ordinary NumPy functions fast, and never gives a wrong answer."""

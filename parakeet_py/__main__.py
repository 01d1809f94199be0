"""`python -m parakeet_py` is the `parakeet` command."""

from parakeet_py.cli import main

if __name__ == "__main__":
    main()

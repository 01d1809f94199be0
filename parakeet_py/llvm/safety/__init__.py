"""Checked machine code (`PARAKEET_CHECK=2`): what it does to memory and to references is looked at before it is done.

The compiler prints other text and the loader links it against other functions; without the setting neither is there.

    accesses.py   generated code: every access lies in its array's memory, every block that is counted is one
    payloads.py   the memory of arrays with red zones around it; what is freed is poisoned and kept for a while
    objects.py    gates: every object that is counted is one, and counts balance over a call
"""

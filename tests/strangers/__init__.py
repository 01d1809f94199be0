"""Packages of others, with every function and method accelerated: their own tests, and their calls replayed.

python -m tests.strangers PyWavelets=pywt tensorly

hook.py      an import hook that accelerates whatever a package defines, and keeps some of its calls
plugin.py    the plugin of pytest that turns it on
replay.py    kept calls, made once more plain and accelerated: results, and warm times
__main__.py  installs the packages beside the project, runs their tests plain and accelerated, prints the table
"""

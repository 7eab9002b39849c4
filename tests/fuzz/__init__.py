"""Bytes, JSON and arguments that nobody meant: perdure refuses them in its own words, or takes
them, and goes on.

What has to hold is in `log_checks`, `line_checks` and the tests. Two kinds of fuzzing use it:
hypothesis, in `make test`, with the same few examples each time, and in `make fuzz` with many and
new ones; and atheris, in `make fuzz`, which looks for new ways through the code.
"""

"""Faults and load: real processes, killed and frozen by a seeded schedule, and a checker that reads
afterwards what everyone wrote down. `python -m chaos` runs it, `docs/reliability.md` has what it
found.
"""

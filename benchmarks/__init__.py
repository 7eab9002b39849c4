"""What perdure costs: `python -m benchmarks` measures all, `python -m benchmarks.<name>` one thing.

Every figure stands beside its budget. Figures of time stand beside a yardstick of their own, which
is measured in the same run, in turns with what it is held against. A missed budget is printed, not
raised.
"""

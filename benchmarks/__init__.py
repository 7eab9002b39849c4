"""What perdure costs: `python -m benchmarks` measures all, `python -m benchmarks.<name>` one thing.

`budgets.py` has every line of the table. A figure stands beside its budget and its aim; figures of
time stand beside a yardstick of their own, which is measured in the same run, in turns with what it
is held against.
"""

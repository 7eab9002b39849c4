"""A model check: every order in which commands, answers, crashes and continue-as-new can meet.

What is explored is the real workflow code, run by the SDK's own workflow instance, and the real
activities, on a store in memory. What is a model is everything around them, the Temporal server
and the clients: it is small, has no clock of its own, and does one thing at a time, so that all
that may happen next can be tried, from every state, once.

- `workflow_run`: one run of the workflow, activation by activation.
- `processes`: what a worker process does besides: activities, on a store, which may die half-way.
- `world`: the server and the clients; from a state to all that may come next.
- `promises`: what has to hold in every state, and at the end.
- `scenarios`: who sends what, and which faults may strike.
- `explorer`: visits every state, shortest ways first, and prints the way to a broken promise.
- `weakened`: safeguards that are taken out of the real code, to see the explorer notice.
"""

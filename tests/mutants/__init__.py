"""Safeguards that are broken on purpose, one at a time, and the tests that have to notice.

`make mutants` tries all of them: `catalogue` says what is broken and who notices, `trial` breaks it
in a copy of the tree and runs those tests. In the tests, a few of the quickest are tried, and for
all the others it is looked whether what they break is still there.
"""

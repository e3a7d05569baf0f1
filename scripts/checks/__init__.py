"""The rules of this repository that a compiler does not know, one module each. `scripts/check.py` runs them all.

A rule is a generator `rule(project) -> findings`. Rules read the project through `project.py`, so their tests
(`scripts/checks_test.py`) give them a handful of made-up files.
"""

"""Property tests for your own apps and reducers: does undo restore, does a fork stay apart, does a reducer keep its type?

A law is an equation that must hold for every conversation, program or reducer, such as `step(step(s, a), b) == step(s, combine(a, b))`;
Hypothesis (extra `laws`) searches generated examples for one that breaks it. `taiwa laws NAME` and `check_laws` run them.
"""

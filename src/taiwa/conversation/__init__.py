"""A conversation is a value: `app`, `state` with its `reducers`, `history` (nodes, turns, windows), `turn_prompt`, `replies`.

Without I/O, except that `reducers` loads the reducers that a user wrote.
"""

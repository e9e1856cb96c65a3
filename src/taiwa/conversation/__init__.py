"""A conversation is a value: apps, fields, reducers, windows, nodes, and the layout of a prompt. No I/O."""

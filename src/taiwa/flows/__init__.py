"""Programs without I/O: chat turns, typed extraction, routing, votes, checked plans, reasoning with tools."""

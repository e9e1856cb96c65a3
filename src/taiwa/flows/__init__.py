"""Programs without I/O: chat turns, answers from documents with citations, typed extraction, routing, votes, checked plans, reasoning with tools."""

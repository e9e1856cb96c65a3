"""The dialogue before retrieval, and answers with citations: programs without I/O."""

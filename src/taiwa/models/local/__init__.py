"""Models in this process, through transformers: loading, reading, and answering requests."""

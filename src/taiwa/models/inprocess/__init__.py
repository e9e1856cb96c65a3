"""Models in this process: token-by-token decoding, and the interface that a backend must implement."""

"""Files of weights on this machine: which are known, where they can be fetched, and which other programs already have."""

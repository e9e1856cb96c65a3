"""Orders of a model at the order desk, compared with a key."""

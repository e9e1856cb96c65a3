"""Models in GGUF files: a llama.cpp server of our own in a process of its own, and a hook for `llama-cpp-python`."""

"""Models behind HTTP: client, retries, errors, embeddings."""

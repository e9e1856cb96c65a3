"""Stored conversations: a store, an app, a model and the flows, joined."""

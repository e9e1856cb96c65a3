"""Conversations that last: a store, an app, a model and the flows, joined. The command line and programs use this face."""

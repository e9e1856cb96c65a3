"""A local server that speaks the protocols of other model servers, backed by apps, sessions and one store.

`serve.build` makes the ASGI application, `serve.TaiwaServer` runs it. Each protocol is a module of `wires`, which lists its routes.
"""

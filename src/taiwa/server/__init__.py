"""A local server that speaks the protocols of other model servers, in front of apps, sessions and one store.

`application.build` makes the ASGI application, `serve.serve` runs it. Each protocol is a module of `wires`.
"""

"""The protocols of the server: each is a module with a `wire`, which lists its routes and formats its errors.

To add a protocol, write a module like `chat_completions` and add it to `serve.WIRES`.
"""

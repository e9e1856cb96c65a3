"""One client for every operation on language models: `Client` blocks, `AsyncClient` has the same methods as coroutines.

A client has a model with its connections, tools, a retriever, a store and limits. Each method creates a program and runs it,
so both clients send the same requests; `run` runs your own program.
"""

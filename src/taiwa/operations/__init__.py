"""Use cases with typed options and typed results, shared by the command line and the server.

An operation prints nothing. It returns a value or yields events (`TextDelta`, `Notice`, and the result last), and raises
`TaiwaError`. `result_json.to_json` is the JSON of every result.
"""

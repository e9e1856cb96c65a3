#! builtin
# The demonstration that comes along.
#== demo
taiwa demo

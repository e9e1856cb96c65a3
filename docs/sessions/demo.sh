#! builtin
# The built-in demonstration.
#== demo
taiwa demo

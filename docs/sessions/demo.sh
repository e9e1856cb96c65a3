# The demonstration, which needs no model.
#== demo
taiwa demo

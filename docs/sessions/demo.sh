# The demonstration that comes along; it plays its own dialogue.
#== demo
taiwa demo

# The demonstration without a model, since none is fetched in the home of the recording.
#== demo
taiwa demo

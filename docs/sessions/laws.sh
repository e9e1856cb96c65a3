# The laws of one app, tried on generated conversations.
#== laws
taiwa laws translate -n 20

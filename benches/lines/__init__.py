"""How many lines the same jobs take with taiwa and with others; each is run against a server on this machine before it is counted."""

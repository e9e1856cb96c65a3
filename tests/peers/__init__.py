"""Real peers for the edges: a genuine llama.cpp server, and a server that does everything wrong on command."""

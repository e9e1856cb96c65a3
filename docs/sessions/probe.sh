#! llama.cpp
# A genuine llama.cpp server with a model of random weights: its answers are noise, so a rule that is kept was enforced.
#== probe
taiwa probe
taiwa models show
taiwa models remote

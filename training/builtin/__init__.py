"""How the built-in model is made: what it reads, its tokenizer, its training, its measurements and its card."""

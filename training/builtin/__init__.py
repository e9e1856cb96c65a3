"""The built-in model: samples, tokenizer, training, evaluation and model card."""

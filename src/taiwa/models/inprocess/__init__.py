"""Writing a text token by token with a model in this process: what is asked of the model, and how its answers become text."""

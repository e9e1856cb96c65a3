"""The page: a conversation with its branches, its state and what made it, rendered as HTML."""

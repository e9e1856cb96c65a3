"""The page: a conversation with its branches, its state and its calls, rendered as HTML."""

"""Apps: a Markdown file that defines the instructions, state and options of a conversation."""

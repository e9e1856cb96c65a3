"""Apps: one Markdown file makes one program of the conversation loop."""

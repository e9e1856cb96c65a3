"""A lenient parser of the malformed JSON that language models write."""

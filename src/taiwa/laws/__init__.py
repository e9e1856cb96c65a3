"""Laws of programs, conversations and reducers, checked on generated examples (extra `laws`)."""

"""What tries the project out: the laws of conversations and reducers on generated examples."""

"""Orders taken by a model with the app `order`, compared with a key."""

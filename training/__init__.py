"""Where the models that come with taiwa are made; nothing here is part of the package."""

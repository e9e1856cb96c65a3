"""Programs that make the models shipped with taiwa. They are not part of the package."""

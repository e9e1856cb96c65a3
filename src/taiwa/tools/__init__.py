"""Tools that a model can call: typed functions, exact tools for numbers and chemistry, and isolated processes for your own."""

"""How well a model takes orders: requests to the order desk with a key of what each of them orders."""

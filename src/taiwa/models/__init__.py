"""How models are reached: provider protocols as pure codecs, HTTP edges, and a scripted model for tests."""

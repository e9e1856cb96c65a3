"""Models: names and providers, codecs of HTTP protocols, models in this process, prices, and a scripted model for tests."""

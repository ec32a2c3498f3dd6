"""Models of your own for Sojourn: a `Task` of PyTorch or a function of Keras, exported as plain data."""

__version__ = "0.1.0"

"""Version of the client: that of the API it was generated from."""

__version__ = "0.2.0"

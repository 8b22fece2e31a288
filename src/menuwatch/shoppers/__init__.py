"""What visitors of the public site asked to be told of."""

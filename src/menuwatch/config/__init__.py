"""Settings: declared as fields, read once from the environment."""

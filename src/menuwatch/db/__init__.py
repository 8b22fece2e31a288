"""PostgreSQL: where it is, its schema, its statements."""

MINIMUM_VERSION = 15
"""The oldest PostgreSQL that the schema works on."""

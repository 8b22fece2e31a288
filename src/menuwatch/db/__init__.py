"""PostgreSQL: connections, schema, queries."""

MINIMUM_VERSION = 15
"""The oldest PostgreSQL that the schema works on."""

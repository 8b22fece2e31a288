"""Schedules: what is enqueued by itself. Migration 0004 has the rules; `due` has the arithmetic, `store` the rows."""

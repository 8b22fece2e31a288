"""Recurring schedules that enqueue tasks. Migration 0004 has the rules; `due` has the arithmetic, `store` the rows."""

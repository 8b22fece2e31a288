"""Alerts: what people want to be told of, when it happens, and whether they were told."""

"""Alerts: rules, their evaluation, events and the delivery of notifications."""

"""Explain why a task is in its current state: facts, rules and the resulting reason."""

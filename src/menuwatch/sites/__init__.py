"""Shops that are found by keyword: where their pages lie and what those say. No I/O; `crawls.base` has the protocol."""

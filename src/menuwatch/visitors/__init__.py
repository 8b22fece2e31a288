"""Visitor statistics of the public site (how many, from where, which pages) without storing who they are.

request ── page of ours, requested by a person who does not object? ──▶ Visit (memory only) ──▶ marks of the day's salt ──▶ sums
"""

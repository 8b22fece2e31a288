"""How many people look at the public site, from where and at what, without a note of who they are.

request ── page of ours, asked by a person who does not object? ──▶ Visit (memory only) ──▶ marks of the day's salt ──▶ sums
"""

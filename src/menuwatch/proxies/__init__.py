"""The proxies: who may carry a request, and how each is doing.

A proxy is active (may be picked) → inactive after five faults of its own in a row, or five refusals (403) in a row that other
proxies did not meet at the same time. Success resets both counts. Passwords stay in the row and in `Proxy.password`, which no
representation shows.
"""

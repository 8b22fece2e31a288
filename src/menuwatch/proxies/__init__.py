"""The proxies: who may carry a request, and how each is doing.

A proxy is active (may be picked) → inactive after five faults of its own in a row, or five refusals (403) in a row that other
proxies did not meet at the same time. Success resets both counts. An inactive one is probed, a minute later at first and after
doubled waits from then on, and active again once a real request gets through. An operator may disable one in either state; only an
operator enables it. Passwords stay in the row, sealed where there is a key (vault), and in `Proxy.password`, which no representation
shows.
"""

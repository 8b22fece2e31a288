"""Proxies and their health.

A proxy is active (may be used) → inactive after five faults of its own in a row, or five refusals (403) in a row that other
proxies did not meet at the same time. Success resets both counts. An inactive one is probed after a minute at first, then with
doubled delays, and is active again once a real request succeeds.
Only operators disable and enable proxies, in either state.
Passwords stay in the row, encrypted with SECRET_KEY (passwords.py), and in `Proxy.password`, which no `repr` shows.
"""

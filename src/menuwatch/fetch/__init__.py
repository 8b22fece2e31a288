"""Fetching: an identity (proxy, browser profile, locale, cookies) asks, and what happens is judged, blamed and reacted to.

A request's way through `session`:

    ask ──ok──────────────→ the answer
     ├─ empty_suspect, schema_changed → the answer, which whoever asked keeps and does not believe
     ├─ blocked, challenge → another proxy and profile, 3 times → Blocked
     ├─ rate_limited ─────→ Throttled, at once: another identity would not be politer
     ├─ proxy_config, proxy_down, tls_untrusted → another proxy, 5 times → Transient
     ├─ path_reset ───────→ the same identity once, then another proxy
     ├─ target_down ──────→ the same identity, 2 times → Transient
     └─ too_large, client_bug → Permanent

Nothing here opens a connection to anything but a proxy: `transport` is the only module that has a socket, and it cannot be made
without one.
"""

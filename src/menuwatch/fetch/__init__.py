"""HTTP fetching through identities (proxy, browser profile, locale, cookies); each result is classified and mapped to a reaction.

Flow of a request through `session`:

    ask ──ok──────────────→ the answer
     ├─ empty_suspect, schema_changed → the response, which the caller keeps as not trustworthy
     ├─ blocked, challenge → another proxy and profile, 3 times → Blocked
     ├─ rate_limited ─────→ Throttled at once, without trying another identity
     ├─ proxy_config, proxy_down, tls_untrusted → another proxy, 5 times → Transient
     ├─ path_reset ───────→ the same identity once, then another proxy
     ├─ target_down ──────→ the same identity, 2 times → Transient
     └─ too_large, client_bug → Permanent

Connections go to proxies only: `transport` is the only module that opens sockets, and it requires a proxy.
"""

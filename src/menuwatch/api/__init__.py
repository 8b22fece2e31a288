"""The HTTP API. Routes check what came in, call an operation and encode what it gives; they hold no rule of the business.

request ─► observe (id, log, metrics) ─► route ─► operation, in one transaction ─► answers (exact JSON, ETag)
                                           └─ refusals and faults ─► problems (RFC 9457)
"""

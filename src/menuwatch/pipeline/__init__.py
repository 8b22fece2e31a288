"""Task handlers, one module per role. A handler takes a task and returns an outcome; it never writes task state or calls another
handler: follow-up work is a task of its own.

    store_discovery ──► product_discovery ──► product_refresh
    entry_point_discovery ──► product_discovery
    payload_fetch ──────────────────────────► product_refresh
"""

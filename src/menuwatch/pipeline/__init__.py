"""The work itself: one module per role. Handlers take a task and return an outcome; they never write task state, and no
handler calls another: what follows is a task of its own.

    store_discovery ──► product_discovery ──► product_refresh
    entry_point_discovery ──► product_discovery
    payload_fetch ──────────────────────────► product_refresh
"""

"""The hosts that are asked: how often each may be, whether it is at present, and what it said to that.

One row per host is the budget of all workers together: a rate that grows gently and halves on trouble, a cool-down where the host
named one, and a circuit that opens when it refuses many identities in a row.

    closed ──refused by many identities, none let in──► open ──its time is over──► one identity tries
       ▲                                                 ▲                            │
       └──────────────── let in ────────────────────────────────────── refused ───────┘
"""

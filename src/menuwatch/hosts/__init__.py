"""Hosts: rate limits, availability, and how they respond.

One row per host is the budget of all workers together: a rate that grows slowly and halves on errors, a cooldown if the host asks
for one, and a circuit that opens when it refuses many identities in a row.

    closed ──refused by many identities, none let in──► open ──its time is over──► one identity tries
       ▲                                                 ▲                            │
       └──────────────── let in ────────────────────────────────────── refused ───────┘
"""

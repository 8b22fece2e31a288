"""The Sweed platform: shop pages and their API at `web-ui-….sweedpos.com`.

Based on answers recorded at one shop on 2025-12-31, on 160 store records of January 2026, and on public callers of the API.
"""

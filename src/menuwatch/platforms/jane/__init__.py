"""The platform Jane (I Heart Jane): menus by its Algolia search index, stores by its own API.

Based on one recorded merchandising answer (Pennsylvania, November 2025), one recorded store record (California, July 2025) and on
public callers and descriptions of the search index (to June 2026).
"""

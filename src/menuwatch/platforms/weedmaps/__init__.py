"""The Weedmaps platform.

Based on 133 recorded menus and 311 listings (New Mexico, May 2024), one live menu (California, 2021), and public callers of its
discovery API.
"""

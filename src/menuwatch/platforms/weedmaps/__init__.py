"""The Weedmaps platform.

Based on 133 recorded answers (New Mexico, May 2024) and on public callers of its discovery API.
"""

"""The Weedmaps platform.

What is known of it comes from 133 recorded answers (New Mexico, May 2024) and from public callers of its discovery API.
"""

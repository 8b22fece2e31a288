"""The Joint platform (Joint Ecommerce, a plugin of WordPress).

Based on 114 recorded products of one shop (New Jersey, June 2025) and on public callers.
"""

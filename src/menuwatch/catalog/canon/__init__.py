"""The vocabulary that all platforms share: what their words for kinds, strains, weights and packages mean. Pure.

A platform's own word always stays in its column; what it means stands beside it, and is None where nobody knows. None is no
failure: `category IS NOT NULL AND category_canon IS NULL` lists the words that are news.
"""

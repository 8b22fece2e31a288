"""The canonical taxonomy of all platforms: what their words for kinds, strains, weights and packages mean. Pure.

A platform's own word stays in its column; the canonical value is stored beside it, None if unknown. To list unknown words:
`category IS NOT NULL AND category_canon IS NULL`.
"""

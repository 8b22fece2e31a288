"""Analytics, refreshed every few hours: tables in 16_analytics.sql of the schema, definitions in docs/explanation/analytics.md.

A session lock allows one refresh at a time; each step is a short transaction and works on temporary tables, so that it blocks
neither readers nor crawls, and holds no snapshot longer than a step.
"""

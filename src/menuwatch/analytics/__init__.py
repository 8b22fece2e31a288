"""Figures for analysts, made anew every few hours (migration 0015 has the tables; docs/explanation/analytics.md what they mean).

One refresh at a time, held by a session lock of the database; each step is a short transaction of its own and works on temporary
tables, so that neither readers nor crawls wait for it, and no snapshot is held for longer than a step.
"""

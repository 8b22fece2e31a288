"""Use cases for people, and the read models that screens and the API show.

Functions take a connection and run in its transaction; nothing here commits. What a person asked for and cannot have is one of
the refusals of `refusals`.
"""

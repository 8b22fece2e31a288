"""Dutchie Plus: menus of Dutchie stores in the format of its official API, taken from a shop's own site (`products_list`).

Ids are Dutchie's; the format differs: enumerations in UPPER_SNAKE, options as objects with prices and stock. Answers do not
name their store. They are read from recorded files; no requests are sent.
"""

"""Dutchie Plus: the menus of Dutchie's stores as its official API words them, taken from a shop's own site (`products_list`).

Ids are Dutchie's, the rest is worded anew: enumerations in UPPER_SNAKE, options as objects with their prices and stock. The answers do
not say which store they are of. They are read where they were recorded; nobody is asked for more.
"""

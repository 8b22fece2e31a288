"""Menuwatch watches retail menus: it finds stores, crawls their menus and keeps price, stock and potency history."""

__version__ = "0.2.0"

"""Dovetail: Dutchie Plus menus that a WordPress plugin serves on the shop's own site (`/wp-json/dovetail-api/v1/products`).

Ids are Dutchie's. One site has several shops (`retailer`) and, for each, a recreational or a medical menu (`menutype`).
"""

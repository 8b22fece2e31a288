"""The storefront: the item index across stores, its search, and price watches."""

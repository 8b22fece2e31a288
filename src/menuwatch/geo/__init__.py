"""Locations of IP addresses and postcodes."""

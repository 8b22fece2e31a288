"""What bench/fetch.py is made of; README.md tells how it measures."""

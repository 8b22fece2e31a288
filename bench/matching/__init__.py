"""Parts of bench/matching.py."""

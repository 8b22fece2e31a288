"""Backup and restore of an installation: every row and every file, each with its hash."""

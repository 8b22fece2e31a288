"""An installation as a folder, and back: every row, every file, each with its hash."""

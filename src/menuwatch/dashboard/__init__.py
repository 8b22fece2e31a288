"""The screens of those who run it, below `/admin`."""

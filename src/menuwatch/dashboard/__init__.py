"""The dashboard for operators, below `/admin`."""

"""How many looked at the public site, and from where, without knowing who."""

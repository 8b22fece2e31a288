"""Groups of worker processes: a pod of a fixed number, and those of this machine, of which one can have more or fewer."""

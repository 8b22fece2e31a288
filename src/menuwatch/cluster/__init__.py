"""Groups of worker processes: so far the ones of this machine, held by a supervisor."""

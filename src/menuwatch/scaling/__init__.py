"""Run groups of worker processes: a pod of fixed size, or a scalable pool on this machine."""

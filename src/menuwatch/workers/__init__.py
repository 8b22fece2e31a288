"""Workers: who they are and that they live (`worker_registry`), and what they say of themselves."""

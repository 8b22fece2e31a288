"""Workers: registry (`worker_registry`), heartbeats, commands and availability."""

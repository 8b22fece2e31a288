"""The faces as people meet them: a real server, a real browser."""

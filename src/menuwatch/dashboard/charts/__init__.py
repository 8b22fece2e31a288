"""Charts as SVG made on the server, by pure functions."""

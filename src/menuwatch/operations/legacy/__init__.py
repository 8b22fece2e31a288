"""Coming from the old system: its schedules and jobs are put to rest, and its stores, products and price history are taken over."""

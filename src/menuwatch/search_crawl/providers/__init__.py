"""Services that fetch pages for us: an order goes out, the page comes back by webhook or as a row."""

"""Pictures of the market's products: what each shows is in its URL, and it is drawn from that alone, with letters of our own, so
that it is the same on every machine, whatever fonts it has."""

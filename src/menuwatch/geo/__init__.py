"""Where on earth an address or a postcode is."""

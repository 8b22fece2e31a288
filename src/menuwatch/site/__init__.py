"""The public site for shoppers."""

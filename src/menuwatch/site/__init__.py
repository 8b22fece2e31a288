"""The public site: what shoppers see."""

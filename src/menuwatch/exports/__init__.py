"""Tables as files that other programs read: their columns, their formats, and how they come into being whole or not at all."""

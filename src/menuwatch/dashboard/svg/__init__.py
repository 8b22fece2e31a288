"""Pictures, made on the server by pure functions: classes and presentation attributes only, since no inline style is allowed."""

"""Archive of raw answers, kept forever, so that every menu can be normalized again."""

"""Raw answers, kept for ever: what was fetched can always be normalized again."""

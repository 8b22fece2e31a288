"""Who may do what: users, sessions, tokens, and the record of what each did."""

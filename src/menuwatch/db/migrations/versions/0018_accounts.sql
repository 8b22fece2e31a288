-- Who may do what: users, sessions, tokens, login failures, the audit, and keys of repeated requests.
SELECT 1;

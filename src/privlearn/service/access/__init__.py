"""Who may do what: keys and logins."""

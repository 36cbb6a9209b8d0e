"""Schema revisions, forward only: each is a tuple of literal statements."""

"""What keeps the house in order; nothing here is shipped."""

"""What callers say that a request is for: settings, costs by value, and deletion of values."""

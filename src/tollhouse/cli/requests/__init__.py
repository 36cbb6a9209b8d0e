"""Commands about requests."""

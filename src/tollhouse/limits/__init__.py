"""Rate limits: requests and tokens per minute, and concurrent requests."""

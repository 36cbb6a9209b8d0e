"""Traffic: requests and tokens per minute, and requests at once."""

"""Records of requests: one row per request, and hourly sums."""

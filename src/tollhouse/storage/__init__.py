"""PostgreSQL, the only truth: the pool, the one COMMIT, and what every room stores alike."""

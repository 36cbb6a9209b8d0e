"""PostgreSQL, the only source of truth: pools, transactions, and storage that packages share."""

"""Cost and usage reports: sums of settled requests, in buckets of UTC days or hours."""

"""What was spent and used: sums of settled requests, in buckets of UTC days or hours."""

"""What policies decided: kept without a word of what was decided about."""

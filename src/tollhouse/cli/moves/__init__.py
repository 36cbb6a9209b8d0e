"""Commands that move an organization to another cell."""

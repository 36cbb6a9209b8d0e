"""Commands about keys and master secrets."""

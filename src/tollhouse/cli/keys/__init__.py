"""Commands about keys, peppers and master secrets."""

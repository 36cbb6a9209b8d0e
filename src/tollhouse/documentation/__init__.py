"""The pages of error codes, which the gateway serves itself. `make reference` writes their data."""

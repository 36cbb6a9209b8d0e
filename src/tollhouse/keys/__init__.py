"""Project keys and Admin keys: minted once, kept as digests, found through one directory."""

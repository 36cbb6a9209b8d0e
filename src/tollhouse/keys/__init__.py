"""Project keys and Admin keys: creation, lookup, authorization. Only their digests are stored."""

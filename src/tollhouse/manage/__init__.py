"""The management extension: operations that the given specification does not have."""

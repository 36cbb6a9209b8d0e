"""The management extension: what an organization needs and the specification does not show."""

"""Token counting in the form of the Messages API."""

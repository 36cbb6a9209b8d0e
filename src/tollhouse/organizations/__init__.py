"""Organizations: a deployment's customers. The operator creates and closes them, not the API."""

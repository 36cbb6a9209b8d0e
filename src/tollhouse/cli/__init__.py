"""The `tollhouse` command: the services of the API, for the operator of a deployment."""

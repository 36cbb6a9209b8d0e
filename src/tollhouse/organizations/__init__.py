"""The customers of a deployment. Created and ended by the operator, never through the API."""

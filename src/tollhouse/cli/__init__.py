"""The operator's verbs: the same services as the API, for whoever holds the configuration."""

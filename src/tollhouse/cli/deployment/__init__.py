"""Commands that set up, migrate and run a deployment."""

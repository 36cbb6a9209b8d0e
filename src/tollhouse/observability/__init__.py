"""What an operator sees of a running process: log lines and metrics, never bodies or secrets."""

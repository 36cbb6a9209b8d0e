"""Logs, metrics and traces of a process, without bodies and secrets."""

"""Shared by tests: real databases, real servers on loopback, organizations with keys."""

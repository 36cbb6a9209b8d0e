"""Mutation testing: change one place of the source, and see whether a test fails."""

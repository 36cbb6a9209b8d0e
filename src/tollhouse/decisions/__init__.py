"""Decisions of policies, stored without any text of the content."""

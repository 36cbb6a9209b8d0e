"""Commands about organizations, projects, rate limits and the audit log."""

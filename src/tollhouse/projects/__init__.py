"""Projects: what keys belong to, and what costs and policies are scoped by."""

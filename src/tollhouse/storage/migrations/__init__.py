"""Alembic's folder: its environment, and a module for each revision of the schema."""

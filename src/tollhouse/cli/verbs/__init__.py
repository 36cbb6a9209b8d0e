"""The commands that are made from the declarations of operations."""

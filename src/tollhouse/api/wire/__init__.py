"""Conversion of domain objects into wire types."""

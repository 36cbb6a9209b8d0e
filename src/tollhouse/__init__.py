"""Tollhouse: the gate in front of an organization's models."""

__version__ = "0.2.0"

"""Engines behind the gateway: the port, one implementation over HTTP, and the way to a replica."""

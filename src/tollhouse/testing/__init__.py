"""Engines for demos and tests: a scripted one, and a small real one."""

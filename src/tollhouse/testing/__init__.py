"""Engines for trials and tests: one whose behaviour is scripted, and a small real one."""

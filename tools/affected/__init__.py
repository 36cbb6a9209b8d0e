"""Runs what a change may have broken, within a minute."""

"""Types and functions that every other package may use, and that import no other package."""

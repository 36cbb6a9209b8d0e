"""Rules of the house that ruff, pyright and import-linter cannot state, read from the syntax."""

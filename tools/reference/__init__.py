"""`python -m tools.reference`: pages of docs/reference, made from what the program itself says."""

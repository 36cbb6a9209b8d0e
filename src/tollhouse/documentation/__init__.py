"""The documentation that the gateway serves: the site of `make docs`, and a page per error code."""

"""`tollhouse models`: catalogs of other gateways in the form of ours."""

"""`tollhouse policy`: policies from the draft to the published version."""

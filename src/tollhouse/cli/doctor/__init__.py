"""`tollhouse doctor`: the checks of a deployment."""

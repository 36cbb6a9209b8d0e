"""Asking a judge: what is judged, how it is asked, what its answers mean."""

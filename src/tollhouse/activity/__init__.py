"""One row per request, for whoever asks what became of it."""

"""One module for each revision, beginning with its number, and the texts that it names."""

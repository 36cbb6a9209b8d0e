"""The web console: built files, served from memory. The console is a client of the API."""

"""The web console's built files, and how they are served. The console is a client of the API."""

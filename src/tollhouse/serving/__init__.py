"""The running service: a supervisor, its workers, and the HTTP server inside each of them."""

"""The HTTP edge: routes, authentication, request bodies, answers and thin handlers."""

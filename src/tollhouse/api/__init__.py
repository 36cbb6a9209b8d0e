"""The edge: routes, authentication, bodies in and answers out. Handlers are thin."""

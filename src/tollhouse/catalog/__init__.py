"""What can be asked of which backend, at which price."""

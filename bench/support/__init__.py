"""What a measurement of the gateway needs around it."""

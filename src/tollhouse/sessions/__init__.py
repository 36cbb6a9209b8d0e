"""Sessions of the console: who is signed in with which browser, and for how long."""

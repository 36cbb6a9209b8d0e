"""What tests share: real databases, real servers on loopback, and a world to act in."""

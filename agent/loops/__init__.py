"""What the daemon does, one loop a file.  Each takes the flag that ends it."""

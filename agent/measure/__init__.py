"""Short measurements of a device's ceilings; each returns rates with their spread."""

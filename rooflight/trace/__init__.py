"""The model: a recording as columns, whatever format it came from."""

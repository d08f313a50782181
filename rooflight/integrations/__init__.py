"""Callbacks of training frameworks, each of which is imported only by its own module."""

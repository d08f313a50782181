"""What to do about a run: its findings, what if, and how it compares with another."""

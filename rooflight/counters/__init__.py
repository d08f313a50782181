"""What hardware counters tell of a kernel: which launch they are of, and its FLOPs and bytes.

docs/counters.md has the formulas with their sources.  Files are read by :mod:`rooflight.readers.counters`.
"""

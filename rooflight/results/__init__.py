"""Results as the protocol's rows: one file per section of a rank."""

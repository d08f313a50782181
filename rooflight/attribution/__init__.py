"""Who launched what: GPU events tied to launches, ops, modules and steps."""

"""What to record of an engine: so far, draws."""

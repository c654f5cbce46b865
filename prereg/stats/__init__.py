"""Numbers: exact bounds, the error budget, event membership and power. Pure functions."""

"""Derived pages of a study; never evidence."""

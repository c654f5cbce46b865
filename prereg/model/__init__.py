"""Frozen types of the field's words. Nothing here reads or writes anything."""

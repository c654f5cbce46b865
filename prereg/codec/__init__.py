"""Bytes to values and back: strict JSON, canonical JSON, schemas, model types."""

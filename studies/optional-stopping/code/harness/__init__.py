"""The engine side: runs inside an engine's own environment and speaks JSON lines (see `harness.worker`)."""

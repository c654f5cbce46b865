"""Starts the independent auditor as a process of its own and signs what it says."""

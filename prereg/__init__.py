"""prereg: preregister, seal, collect, analyse and audit computational experiments."""

__version__ = "0.1.0"

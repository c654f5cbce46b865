"""One module an engine; `harness.adapters.base.load` imports the one that a configuration names."""

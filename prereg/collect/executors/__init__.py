"""Where jobs run: `base` is what the runner knows, each other module one place."""

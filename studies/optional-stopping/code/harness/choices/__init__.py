"""The exact channel: an engine's own output law, enumerated through the engine."""

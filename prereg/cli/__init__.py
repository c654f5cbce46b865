"""The door: one small module a verb. Nothing heavy is imported before a verb runs."""

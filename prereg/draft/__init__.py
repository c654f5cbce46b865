"""From nothing to a study that can be sealed: scaffolds, the event family, and `check`."""

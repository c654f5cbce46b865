"""From authenticated records to decisions, by the sealed rules."""

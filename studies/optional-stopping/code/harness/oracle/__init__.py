"""The sequential law of a tiny configuration, enumerated twice: once plainly, once quickly."""

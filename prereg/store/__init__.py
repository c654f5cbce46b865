"""Path names and git: the only room that knows either."""

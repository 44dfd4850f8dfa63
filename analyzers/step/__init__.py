"""Where the time of a step went and what limits it."""

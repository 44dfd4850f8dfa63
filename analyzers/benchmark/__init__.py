"""What the results of a load generator tell of a server: load, queue, step, sweep."""

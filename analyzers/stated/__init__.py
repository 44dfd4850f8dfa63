"""What the user states of a run, held against what the capture itself shows."""

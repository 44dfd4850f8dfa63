"""A model on a device without a run: memory, phases, predicted speed, choices side by side."""

"""What another setting would have done, by the engine's own scheduler on the cost model."""

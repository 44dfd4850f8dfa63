"""What was asked of the engine, what held it back, and the latencies that followed."""

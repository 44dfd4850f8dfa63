"""Results of benchmarks as captures: what a client offered and what it measured."""

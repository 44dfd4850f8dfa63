"""Several sources of one run on one clock: a server's log, metrics, GPU telemetry, a benchmark."""

"""Reads what a Prometheus server scraped of a fleet's engines."""

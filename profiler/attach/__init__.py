"""Watches a live server through its metrics page."""

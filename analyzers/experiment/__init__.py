"""Runs that differ in one setting: what responds to it, and what that says of the limit."""

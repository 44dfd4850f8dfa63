"""Runs another command under nsys, and joins what the two records say of the same steps."""

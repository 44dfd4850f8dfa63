"""How a verdict was reached, step by step, so that it can be checked by hand."""

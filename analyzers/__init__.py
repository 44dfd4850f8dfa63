"""Judge: cost model, scheduler model, rules, step budget, verdict and what-if; pure functions."""

"""The cost model: exact counts, operators, roofline, and the machine a run was on."""

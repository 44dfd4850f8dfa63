"""Texts that several tools printed, pasted one below the other."""

"""The run over time: windows, what each is limited by, and where that changes."""

"""What NVIDIA's management library says of a GPU while a run goes on; nothing here sets anything."""

"""Model presets, in the form of a Hugging Face config.json."""

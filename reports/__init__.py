"""Tell: terminal, markdown and JSON; format only, never compute."""

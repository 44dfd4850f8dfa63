"""Find out what can be observed on this machine; nothing is changed, no device is put to work."""

"""Programs that the documentation and the demo use."""

"""Read published labels back: the regions that they cover, and which of them hold a value."""

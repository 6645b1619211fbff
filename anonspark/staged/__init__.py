"""Records between input and release: their columns, their batches and their keys."""

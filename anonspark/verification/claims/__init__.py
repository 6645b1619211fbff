"""What is required of a release, and what its manifest and metrics say of it."""

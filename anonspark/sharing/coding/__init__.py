"""Read the coding of several holders, and compare their releases with it."""

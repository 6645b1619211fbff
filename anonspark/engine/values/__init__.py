"""Read, validate and hash the values of Arrow's columns, on every engine."""

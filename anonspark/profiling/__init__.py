"""Profile a table before anything is configured: find the columns that identify people."""

"""Data to try things out with: generated people, and public data sets fetched on demand."""

"""The reader of a release: its labels as typed values, and counts with certain bounds."""

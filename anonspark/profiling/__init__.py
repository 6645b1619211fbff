"""Profiles: what a table has that tells people apart, before anything is configured."""

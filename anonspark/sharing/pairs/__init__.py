"""Audit pairs of releases of the same people."""

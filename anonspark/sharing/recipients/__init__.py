"""Publish releases of one table for several recipients, so that no coalition gains by it."""

"""Recount the published records, and look at every byte of their files: what is proven."""

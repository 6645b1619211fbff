"""Share: more than one table, release or party. The rest of the package knows nothing of it."""

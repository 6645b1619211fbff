"""Recipients: one table, a release for each who asked for it, and no coalition that gains by it."""

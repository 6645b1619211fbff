"""Define values, domains, hierarchies, criteria and figures, without Spark."""

"""What a value, a domain, a hierarchy, a criterion and a figure are, without Spark."""

"""How work is spread over a cluster and where files lie; the only room that knows Spark."""

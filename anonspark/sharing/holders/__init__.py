"""Unite releases of holders who must not pool their tables, and verify the result."""

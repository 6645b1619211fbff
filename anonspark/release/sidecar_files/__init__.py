"""What stands beside the data for who receives a release: explained, described, typed."""

"""Write the files for recipients of a release: explanation, description, types."""

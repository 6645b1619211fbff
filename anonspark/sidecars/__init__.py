"""Write the files for recipients next to the data: explanation, description, types."""

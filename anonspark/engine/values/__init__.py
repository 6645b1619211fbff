"""Values of Arrow's columns as every engine reads, validates and hashes them."""

"""Values of Arrow's columns as every engine reads, judges and hashes them."""

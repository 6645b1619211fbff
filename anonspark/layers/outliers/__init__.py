"""Layer 3: in each group, the records that stay together and those that get another round."""

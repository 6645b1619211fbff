"""A run, in order: the steps from the first layer to the last, and what they warn of."""

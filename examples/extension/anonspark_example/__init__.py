"""A toy model and a toy criterion for anonspark."""

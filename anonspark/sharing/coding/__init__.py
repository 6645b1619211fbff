"""The coding that several holders agreed on, and what their releases say of it."""

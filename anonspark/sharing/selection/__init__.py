"""Choose attributes in private: domains, counts, mechanisms, and the budget that they spend."""

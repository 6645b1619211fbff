"""Attack a release with its original or a population, as someone who has them would."""

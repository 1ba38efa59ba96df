"""Models: estimates, the model recommended to a claim, models in trouble; prices and tiers."""

"""Models: what a task will take, which one a claim is told, which are in trouble; prices and tiers."""

"""A package that brings one plug-in of each kind."""

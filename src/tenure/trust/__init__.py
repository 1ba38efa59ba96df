"""Whose word a file in the working tree is: the user's own, or that of somebody whose repository was cloned."""

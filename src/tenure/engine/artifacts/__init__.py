"""Artifacts: bytes get a name under the fence, go when nobody needs them, move with a project."""

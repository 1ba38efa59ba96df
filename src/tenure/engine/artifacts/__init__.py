"""Artifacts: bytes are named under the fence, deleted when unused, and move with a project."""

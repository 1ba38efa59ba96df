"""The operating system's randomness, for the engine."""

from __future__ import annotations

import os


class SystemRandom:
    def token(self, size: int) -> bytes:
        return os.urandom(size)

    def fraction(self) -> float:
        return int.from_bytes(os.urandom(7), "big") / (1 << 56)

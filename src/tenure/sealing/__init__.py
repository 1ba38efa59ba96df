"""Sealing: secrets at rest. `master_key.py` finds the master key, `cipher.py` is AES-256-GCM under it.

The rules (form of a sealed value, which key seals, comparison by digest) are pure and live in `core/sealed.py`. May
import core, config, user_state and processes. `cryptography` is imported when the first value is sealed or opened.
"""

"""The Python SDK: `Client` for a store on this machine; the same names will speak to a server.

May import the engine and `stores.opening`. It holds no rule: each method makes a command and hands back the outcome.
"""

from tenure.client.client import Client

__all__ = ["Client"]

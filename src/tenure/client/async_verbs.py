"""The methods of AsyncClient: those of Client, whose calls return coroutines. `async_verbs.pyi` has their types."""

from tenure.client.verbs import Verbs as AsyncVerbs

__all__ = ["AsyncVerbs"]

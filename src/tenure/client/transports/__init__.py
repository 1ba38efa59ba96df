"""Transports: how commands and queries reach a store on this machine (`local`) or a server (`http`).

`port.py` is the contract. By URL: `http://` and `https://` are servers, all others are stores. Each transport is
imported when it is used: a command on a local store does not load HTTP, a command to a server does not load the engine.
`asynchronous.py` has both for asyncio. HTTP is written once, as coroutines (`http.Calls`): httpx2 runs them in an event
loop; `http.HttpTransport` runs them to their end in the calling thread. `http_messages.py` has requests and replies,
`http_artifacts.py` the transfer of artifacts, `server_address.py` the URL and the credentials.
"""

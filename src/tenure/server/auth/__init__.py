"""Authentication: from the headers and the peer's address to a Principal, before the body is read.

`authenticator.py` authenticates a request; `policy.py` has the settings, and which ways of listening are refused at the
start; `request_source.py` where a request comes from, with or without a trusted proxy; `origins.py` the checks against
web pages of other sites; `row_cache.py` API keys and web sessions, cached for a moment; `tokens.py` and `key_sets.py`
JWTs; `cookies.py` the dashboard's session.

On loopback no key is needed: a program that reaches it can open the store's file as well. That is true for programs,
not for web pages, which a browser runs for strangers. So a request counts as local only if it names the server by a
loopback name (DNS rebinding), no page of another site sent it (Origin, Sec-Fetch-Site), and no proxy forwarded it.
"""

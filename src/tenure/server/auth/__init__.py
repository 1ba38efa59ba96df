"""Authentication: from the headers and the peer's address to a Principal, before the body is read.

`authenticator.py` authenticates a request; `policy.py` has the settings, and which ways of listening are refused at the
start; `request_source.py` where a request comes from, with the checks against web pages of other sites and the
dashboard's cookie; `row_cache.py` API keys and web sessions, cached for a moment; `tokens.py` JWTs and their keys.

On loopback the token of the start replaces a key: only the user who started the server can read its file, and that
user can open the store as well. Web pages of other sites, which a browser runs, must not get in. So a request counts as
local only if it names the server by a loopback name (DNS rebinding), no page of another site sent it (Origin,
Sec-Fetch-Site), and no proxy forwarded it.
"""

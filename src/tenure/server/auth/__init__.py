"""Who asks: from the headers and the socket's other end to a Principal, before a byte of the body is read.

`gate.py` is the way of a visit; `policy.py` the settings, and which ways of listening are refused at the start;
`visits.py` where a visit comes from, through a trusted proxy or not; `origins.py` what keeps web pages of others out;
`key_ring.py` API keys, kept for a moment; `tokens.py` and `key_sets.py` JWTs; `cookies.py` the dashboard's session.

On loopback nobody has to sign in: whoever reaches it can open the store's file as well. That holds for programs, not
for web pages, which a browser runs for strangers; so a visit counts as local only if it names the server by a loopback
name (DNS rebinding), if no other page sent it (Origin, Sec-Fetch-Site), and if no proxy passed it on.
"""

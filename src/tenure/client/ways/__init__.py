"""Ways to the work: a store on this machine, or a server. A client has one, and knows nothing else of where it is.

`way.py` is the contract. By URL: `http://` and `https://` are servers, anything else is a store. Each way is loaded
when it is taken: a command on a local store never pays for HTTP, nor one to a server for the engine.
"""

"""The MCP server: seven tools, over standard input and output or over HTTP, for agents without a shell.

`arguments.py` has the arguments of each tool (schemas are generated from it), `tools.py` the tools, `replies.py` their
replies; none of these knows the protocol. A tool gets a `Caller`: an identity and a client that acts for it.
`server.py` has the instructions for agents, and connects the tools to the `mcp` package, for both transports:

- stdio: `early_replies.py` reads the input and answers first requests while the package loads, `callers.py` identifies
  the caller and opens its store, `stdio_server.py` asks for the client's folders and reads and writes the lines
- HTTP: `remote_callers.py` identifies callers and uses the server's store, `http.py` is the ASGI application

The `mcp` package is imported only by `server.py`, `stdio_server.py` and `http.py`: it takes longer to load than most
commands take to run. May import agents and below.

To change a tool: its struct in `arguments.py`, its function in `tools.py`. Agents pay for every token of names,
descriptions and schemas with each request; a test limits all seven tools to a thousand tokens.
"""

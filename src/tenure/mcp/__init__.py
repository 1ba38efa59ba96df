"""The MCP server: seven tools, over standard input and output or over HTTP, for agents that are not given a shell.

`arguments.py` says what each tool takes (the schemas are made from it), `tools.py` what it does, `replies.py` how it is
answered, `guide.py` what agents are told; none of these knows the protocol. A tool is given a *seat*: who calls, and a
client that speaks for it. `server.py` joins the tools to the `mcp` package, the same for both wires:

- stdio: `speaking.py` says who calls, `seats.py` opens the store for them, `rooted.py` asks for the client's folders
  and serves, `stdio.py` reads and writes the lines
- HTTP: `hosted.py` says who calls and seats them at the server's store, `http.py` is the ASGI application

The `mcp` package is imported by `server.py`, `rooted.py`, `stdio.py` and `http.py` alone: it takes longer to load than
most commands take to run. May import agents and below.

To change a tool: its struct in `arguments.py`, its function in `tools.py`. Agents pay for every token of names,
descriptions and schemas with each of their requests; a test holds all seven to a thousand.
"""

"""The MCP server: seven tools over standard input and output, for agents that are not given a shell.

`arguments.py` says what each tool takes (the schemas are made from it), `tools.py` what it does, `replies.py` how it is
answered, `guide.py` what agents are told; none of these knows the protocol. `speaking.py` says who calls, `seats.py`
opens the store for them, `stdio.py` reads and writes the lines, `server.py` joins it all to the `mcp` package, which is
imported there alone: it takes longer to load than most commands take to run. May import agents and below.

To change a tool: its struct in `arguments.py`, its function in `tools.py`. Agents pay for every token of names,
descriptions and schemas with each of their requests; a test holds all seven to a thousand.
"""

"""`mcp`: the tools over standard input and output."""

from __future__ import annotations

from argparse import Namespace

from tenure.cli.frame import Run, options


@options()
def mcp(run: Run, given: Namespace) -> int:
    """Serve MCP over standard input and output, for one agent.

    Agent CLIs start it themselves; `tenure setup` writes the entry. It finds the store as every command does, else in
    the folders that the client works in, and may be started before there is one.
    """
    from tenure.cli.crash import kept_crash
    from tenure.mcp.seats import Told
    from tenure.mcp.server import serve

    told = Told(
        run.folder, run.environ, is_fixed=given.dir is not None, project=given.project, agent=given.agent,
        session=given.session,
    )  # fmt: skip
    return serve(told, kept_crash)

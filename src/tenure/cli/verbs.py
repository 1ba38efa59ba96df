"""Every verb: its function, the heading under which help lists it, and its help line; and `tenure help` itself.

To add one: a line here, a function there. A name of two words is a verb under a noun.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec


class Listed(msgspec.Struct, frozen=True):
    where: str  # module of tenure.cli, and function
    text: str


WORKING = {
    "claim": Listed("claim:claim", "claim a task, or the next best one"),
    "next": Listed("claim:next_", "show what `claim` would take, without taking it"),
    "start": Listed("holder_verbs:start", "report that work has begun"),
    "progress": Listed("holder_verbs:progress", "report how far the work is"),
    "checkpoint save": Listed("holder_verbs:save_checkpoint", "save state for the next holder"),
    "checkpoint show": Listed("holder_verbs:show_checkpoint", "print the last checkpoint, within a token budget"),
    "artifact put": Listed("artifacts:put", "store a file as an output of the task"),
    "artifact get": Listed("artifacts:get", "write an artifact into a folder"),
    "artifact list": Listed("artifacts:list_", "list the artifacts of a task, over all its claims"),
    "done": Listed("holder_verbs:done", "submit the result"),
    "fail": Listed("holder_verbs:fail", "report that the attempt failed, and why"),
    "release": Listed("holder_verbs:release", "give the task back without a result"),
    "renew": Listed("holder_verbs:renew", "extend the lease"),
    "ask": Listed("holder_verbs:ask", "ask a person; the task waits for the answer"),
    "spawn": Listed("holder_verbs:spawn", "create subtasks of the task you hold"),
    "run": Listed("run:run", "start agents on tasks, one after another"),
    "whoami": Listed("claim:whoami", "show who you are here, and what you hold"),
    "worktree add": Listed("worktrees:add", "create a git worktree for the task you hold"),
    "worktree list": Listed("worktrees:list_", "list the worktrees of claims and their changes"),
    "worktree remove": Listed("worktrees:remove", "remove worktrees that hold no unmerged work"),
    "land": Listed("worktrees:land", "merge your commits into a branch, and submit"),
}
CREATING = {
    "add": Listed("create:add", "add a task"),
    "link": Listed("create:link", "make one task depend on another"),
    "unlink": Listed("create:unlink", "remove a dependency"),
    "publish": Listed("create:publish", "publish a draft"),
    "plan check": Listed("plan:check", "report every error in plan files"),
    "plan apply": Listed("plan:apply", "create or update the tasks of a plan file"),
    "plan graph": Listed("plan:graph", "draw the graph: text, Mermaid, DOT"),
    "plan export": Listed("plan:export", "export a plan as a plan file"),
    "schedule add": Listed("sources:add_schedule", "create tasks on a schedule"),
    "schedule list": Listed("sources:list_schedules", "list schedules and when each fires next"),
    "schedule show": Listed("sources:show_schedule", "show one schedule and its next ticks"),
    "schedule pause": Listed("sources:pause_schedule", "pause a schedule"),
    "schedule resume": Listed("sources:resume_schedule", "resume a schedule with its next tick"),
    "schedule remove": Listed("sources:remove_schedule", "remove a schedule; its tasks stay"),
    "schedule run": Listed("sources:run_schedule", "create its tasks now"),
    "trigger add": Listed("sources:add_trigger", "create tasks on an event or a signed delivery"),
    "trigger list": Listed("sources:list_triggers", "list triggers and how often each fired"),
    "trigger show": Listed("sources:show_trigger", "show one trigger: its filter and template"),
    "trigger test": Listed("sources:try_trigger", "show what a sample would create, without creating it"),
    "trigger pause": Listed("sources:pause_trigger", "pause a trigger"),
    "trigger resume": Listed("sources:resume_trigger", "resume a trigger, from now on"),
    "trigger remove": Listed("sources:remove_trigger", "remove a trigger; its tasks stay"),
    "trigger rotate": Listed("sources:rotate_secret", "give a webhook a new secret"),
    "trigger watch": Listed("sources:watch", "create a task that investigates when failures cluster"),
    "emit": Listed("messaging:emit", "append a fact to the log, for sinks and triggers"),
    "import": Listed("plan:import_", "import tasks of another tool"),
}
READING = {
    "status": Listed("status:status", "show one screen: leader, agents, progress"),
    "watch": Listed("watch.watch:watch", "show the same, live and full screen"),
    "ready": Listed("task_reads:ready", "list tasks that can be claimed now, best first"),
    "list": Listed("task_reads:list_", "list tasks, by filter"),
    "show": Listed("task_reads:show", "show everything about one task"),
    "why": Listed("task_reads:why", "explain why a task is in its state"),
    "history": Listed("task_reads:history", "show who held a task, and how each claim ended"),
    "results": Listed("task_reads:results", "show every result of a task, refused ones too"),
    "log": Listed("logs:log", "print events, oldest first"),
    "logs": Listed("transcripts:logs", "print or follow the transcript of an agent"),
    "wait": Listed("logs:wait", "wait until tasks have ended"),
    "budget list": Listed("budgets:list_", "list budgets and the remainder of each"),
    "budget show": Listed("budgets:show", "show one budget, its use and its forecast"),
    "budget alerts": Listed("budgets:alerts", "list budgets that are half, nearly or fully used"),
    "forecast": Listed("forecast:forecast", "forecast when open tasks end and what they cost"),
    "budget projection": Listed("budgets:projection", "show burn rate, days left, cost of open tasks"),
    "usage": Listed("status:usage", "show tokens and money that agents reported"),
    "usage add": Listed("status:add_usage", "report tokens or money under your claim"),
    "model list": Listed("models:list_", "list models by tier, price and rate limits"),
    "model savings": Listed("models:savings", "show what choosing models by tier saved"),
    "model estimates": Listed("models:estimates", "compare estimates with what tasks took"),
    "model routing": Listed("models:routing", "turn model hints in claims on or off"),
    "todo": Listed("task_reads:todo", "list everything that waits for a person"),
    "dlq": Listed("task_reads:dlq", "list dead letters: tasks that wait for a person"),
}
OPERATING = {
    "edit": Listed("operator_verbs:edit", "change a task"),
    "note": Listed("operator_verbs:note", "add a note to a task"),
    "answer": Listed("operator_verbs:answer", "answer a holder's question"),
    "pause": Listed("operator_verbs:pause", "pause tasks"),
    "resume": Listed("operator_verbs:resume", "resume paused tasks"),
    "cancel": Listed("operator_verbs:cancel", "cancel tasks"),
    "retry": Listed("operator_verbs:retry", "retry dead letters, cancelled and waiting tasks"),
    "reset": Listed("operator_verbs:reset", "start a completed task over"),
    "archive": Listed("operator_verbs:archive", "hide finished tasks"),
    "assign": Listed("operator_verbs:assign", "offer a task to one agent"),
    "reassign": Listed("operator_verbs:reassign", "take a task from its holder and offer it to another"),
    "approve": Listed("validation_verbs:approve", "pass a result that waits for review"),
    "reject": Listed("validation_verbs:reject", "reject a result, with a reason"),
    "adopt": Listed("operator_verbs:adopt", "accept a refused result that was kept"),
    "recover": Listed("operator_verbs:recover", "end a claim whose receipt is lost"),
    "abort": Listed("operator_verbs:abort", "end a claim that hangs"),
    "undo": Listed("operator_verbs:undo", "undo an earlier command"),
    "budget set": Listed("budgets:set_", "set what a project, dag, task or agent may spend"),
    "budget move": Listed("budgets:move", "move money from one budget to another"),
    "budget remove": Listed("budgets:remove", "remove a budget"),
    "usage confirm": Listed("budgets:confirm_usage", "confirm a cost far above its tokens: budgets count it"),
    "usage reject": Listed("budgets:reject_usage", "reject such a cost: it was not spent"),
    "stop": Listed("operator_verbs:stop", "stop all claiming in a scope"),
    "go": Listed("operator_verbs:go", "allow claiming in a scope again"),
    "limits": Listed("projects:limits", "list limits, where each comes from, and its use"),
    "limits set": Listed("projects:set_limits", "change limits of the project"),
    "project list": Listed("projects:list_", "list the projects of the store"),
    "project show": Listed("projects:show", "show the settings of the project"),
    "project set": Listed("projects:set_", "change settings: router, order, leader and others"),
    "project reorder": Listed("projects:reorder", "move open tasks to the project's order"),
    "track list": Listed("projects:tracks", "list tracks and the agents they are assigned to"),
    "track define": Listed("projects:define_track", "create or change a track"),
    "track assign": Listed("projects:assign_track", "assign a track to an agent"),
    "track release": Listed("projects:release_track", "end the assignment of a track"),
}
SENDING = {
    "webhook set": Listed("messaging:set_webhook", "send events of this project to a URL, signed"),
    "webhook list": Listed("messaging:list_webhooks", "list webhooks and how each fares"),
    "webhook show": Listed("messaging:show_webhook", "show one webhook: what it gets, its last answer"),
    "webhook test": Listed("messaging:test_webhook", "send a test message"),
    "webhook replay": Listed("messaging:replay_webhook", "send deliveries again, with the same ids"),
    "webhook log": Listed("messaging:webhook_log", "show a webhook's last deliveries"),
    "webhook pause": Listed("messaging:pause_webhook", "pause a webhook; its deliveries are kept"),
    "webhook resume": Listed("messaging:resume_webhook", "resume a webhook, and send what waits"),
    "webhook remove": Listed("messaging:remove_webhook", "remove a webhook with its delivery log"),
    "webhook rotate": Listed("messaging:rotate_webhook", "give a webhook a new secret"),
    "relay list": Listed("messaging:list_relays", "list sinks and how far behind each is"),
    "relay pause": Listed("messaging:pause_relay", "send nothing more to a sink; events are kept"),
    "relay resume": Listed("messaging:resume_relay", "resume a paused relay"),
    "relay rewind": Listed("messaging:rewind_relay", "send events to a sink again"),
    "relay remove": Listed("messaging:remove_relay", "forget a sink that is no longer used"),
    "notify test": Listed("messaging:test_notices", "send a test notice to people"),
}
TEAM = {
    "join": Listed("team:join", "name yourself, once for a session"),
    "leave": Listed("team:leave", "end the session and release its claims"),
    "agents": Listed("team:agents", "list agents"),
    "agent list": Listed("team:agents", "list agents"),
    "agent show": Listed("team:show_agent", "show one agent: abilities, claims, state"),
    "agent drain": Listed("team:drain_agent", "let an agent finish its tasks and claim no more"),
    "agent terminate": Listed("team:terminate_agent", "end an agent; it cannot claim until resumed"),
    "agent resume": Listed("team:resume_agent", "let a drained or terminated agent claim again"),
    "pool set": Listed("pools:set_pool", "start agents while tasks are ready, up to a number"),
    "pool list": Listed("pools:list_pools", "list pools and their live processes"),
    "pool show": Listed("pools:show_pool", "show one pool: what it takes, its processes"),
    "pool pause": Listed("pools:pause_pool", "start no more agents of a pool"),
    "pool resume": Listed("pools:resume_pool", "start agents of a pool again"),
    "pool remove": Listed("pools:remove_pool", "remove a pool; running agents finish"),
    "spawn list": Listed("pools:list_spawns", "list processes that pools have started"),
    "msg": Listed("team:msg", "send a message to agents"),
    "inbox": Listed("team:inbox", "read your mail"),
    "reserve": Listed("team:reserve", "reserve paths, ports or names"),
    "unreserve": Listed("team:unreserve", "release reservations"),
    "locks": Listed("team:locks", "list reservations and who holds them"),
    "lead": Listed("team:lead", "become the leader, or renew leadership"),
    "session": Listed("team:session", "show what a session claimed, did and lost"),
}
MAINTENANCE = {
    "init": Listed("setup:init", "create a store here, and set up agents on request"),
    "setup": Listed("setup:setup", "install instructions, skill, MCP entry and hooks"),
    "prime": Listed("setup:prime", "print an agent's current tasks and mail, briefly"),
    "hook": Listed("setup:hook", "run by agents' hooks"),
    "trust": Listed("validation_verbs:trust", "allow risky settings of this repository, as they are"),
    "config": Listed("settings:config", "show settings and where each came from; change one"),
    "daemon": Listed("db:daemon", "expire leases and fire schedules promptly (optional)"),
    "db upgrade": Listed("db:upgrade", "upgrade the store to this version's schema"),
    "db backup": Listed("db:backup", "back up the store while it is in use"),
    "db restore": Listed("db:restore", "restore a backup"),
    "db copy": Listed("db:copy", "copy a project to another store"),
    "db archive": Listed("db:archive", "move finished tasks to the archive"),
    "db check": Listed("db:check", "check the store for damage"),
    "db rls": Listed("row_security:rls", "separate tenants in the database"),
    "db clock": Listed("db:clock", "show the clock's state; accept it after a jump"),
    "db new-epoch": Listed("db:new_epoch", "void every receipt, after a restore"),
    "secret seal": Listed("secrets:seal", "seal texts that were stored as given, without a master key"),
    "secret rotate": Listed("secrets:rotate", "give secrets a new data key, or data keys a new master key"),
    "key create": Listed("serve:create_key", "create an API key"),
    "key list": Listed("serve:list_keys", "list API keys, without their secrets"),
    "key rotate": Listed("serve:rotate_key", "give an API key a new secret"),
    "key revoke": Listed("serve:revoke_key", "revoke an API key"),
    "tenant add": Listed("tenants:add_tenant", "create a tenant"),
    "tenant list": Listed("tenants:list_tenants", "list the tenants of the deployment"),
    "tenant show": Listed("tenants:show_tenant", "show one tenant"),
    "tenant limits": Listed("tenants:tenant_limits", "show or change the limits of a tenant"),
    "tenant move": Listed("tenants:move_tenant", "move a tenant to another store or region"),
    "tenant close": Listed("tenants:close_tenant", "close a tenant; its rows stay"),
    "tenant reopen": Listed("tenants:reopen_tenant", "open a closed tenant again"),
    "member invite": Listed("tenants:invite_member", "make a person a member of the tenant"),
    "member list": Listed("tenants:list_members", "list the members of the tenant"),
    "member role": Listed("tenants:member_role", "change a member's role or projects"),
    "member remove": Listed("tenants:remove_member", "end a membership and revoke its keys"),
    "audit on": Listed("audit:on", "seal the log of the project from now on"),
    "audit head": Listed("audit:head", "print the head of the sealed log, to keep elsewhere"),
    "audit verify": Listed("audit:verify", "check the sealed log, or an export offline"),
    "audit export": Listed("audit:export", "write the sealed log to a file"),
    "audit attest": Listed("audit:attest", "print the head, signed by the server"),
    "audit verify-access": Listed("audit:verify_access", "check the chain of an access log, offline"),
    "completion": Listed("completion:completion", "print a completion script for your shell"),
    "doctor": Listed("doctor.doctor:doctor", "find problems and print a fix for each"),
    "serve": Listed("serve:serve", "serve the store over HTTP: API, dashboard, MCP, metrics"),
    "gateway": Listed("gateway:gateway", "start agents here for a server elsewhere"),
    "mcp": Listed("serve:mcp", "serve MCP over standard input and output"),
    "demo": Listed("demo.demo:demo", "watch one agent die and another take over"),
}

SECTIONS = {
    "Working on tasks": WORKING,
    "Creating work": CREATING,
    "Reading": READING,
    "Operating (for people)": OPERATING,
    "Team": TEAM,
    "Sending events": SENDING,
    "Setup and maintenance": MAINTENANCE,
}
VERBS: dict[str, Listed] = {name: verb for section in SECTIONS.values() for name, verb in section.items()}
ALIASES = {"submit": "done", "ls": "list"}
GROUPS = frozenset(name.split()[0] for name in VERBS if " " in name)


def general(words: Sequence[str]) -> int:
    if {"-V", "--version", "version"} & set(words):
        from tenure import __version__

        sys.stdout.write(f'{{"version": "{__version__}"}}\n' if "--json" in words else f"tenure {__version__}\n")
        return 0
    asked = [word for word in words if not word.startswith("-") and word != "help"]
    if asked:  # `tenure help claim` is `tenure claim -h`
        from tenure.cli.main import main

        return main([*asked, "-h"])
    sys.stdout.write(overview() if "--all" in words else everyday())
    return 0


# What most people and agents need on most days, by who uses it.
EVERYDAY = {
    "Work": ("ready", "claim", "progress", "done", "fail", "ask"),
    "Plan": ("add", "plan apply", "list", "show", "why"),
    "Watch": ("status", "watch", "todo", "log"),
    "Run": ("init", "run", "serve", "doctor"),
}


def everyday() -> str:
    """The everyday verbs, in at most 24 lines."""
    lines = ["usage: tenure VERB …   fenced task claims for teams of AI agents"]
    for title, names in EVERYDAY.items():
        first = True
        for name in names:
            lines.append(f"  {title if first else '':<7}{name:<11} {VERBS[name].text}")
            first = False
    lines += ["", "`tenure help --all` lists every verb; `tenure VERB -h` shows its options."]
    return "\n".join(lines) + "\n"


def help_of_group(first: str) -> int:
    """Print the verbs that begin with this word."""
    under = {name: verb for name, verb in VERBS.items() if name.split()[0] == first}
    lines = [f"usage: tenure {first} VERB …", "", *(f"  {name:<17} {verb.text}" for name, verb in under.items())]
    lines += ["", f"`tenure {next(iter(under))} -h` shows its options and examples."]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def overview() -> str:
    lines = ["usage: tenure [-C DIR] VERB …", "", "Fenced task claims for teams of AI agents."]
    for title, section in SECTIONS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<17} {verb.text}" for name, verb in section.items()]
    from tenure.cli.main import plug_ins

    others = plug_ins()
    lines += ["", "From plug-ins:", *(f"  {name}" for name in others)] if others else []
    lines += [
        "",
        "`tenure VERB -h` shows its options. With `--json` a verb prints one JSON value.",
    ]
    return "\n".join(lines) + "\n"

"""Every verb: where its function is, under which heading help shows it, and one line about it.

To add one: a line here, a function there. A name of two words is a verb under a noun.
"""

from __future__ import annotations

from typing import NamedTuple


class Listed(NamedTuple):
    where: str  # module of tenure.cli, and function
    text: str


WORKING = {
    "claim": Listed("claiming:claim", "take a task, or the next best one"),
    "next": Listed("claiming:next_", "look at what `claim` would take; takes nothing"),
    "start": Listed("holding:start", "say that work has begun"),
    "progress": Listed("holding:progress", "say how far the work is"),
    "checkpoint save": Listed("checkpoints:save", "keep what the next holder must know"),
    "checkpoint show": Listed("checkpoints:show", "print the last checkpoint, within a budget of tokens"),
    "artifact put": Listed("artifacts:put", "keep a file as an output of the task"),
    "artifact get": Listed("artifacts:get", "write an artifact into a folder"),
    "artifact list": Listed("artifacts:list_", "the artifacts of a task, of all its claims"),
    "done": Listed("holding:done", "hand in the result"),
    "fail": Listed("holding:fail", "say that the attempt failed, and why"),
    "release": Listed("holding:release", "give the task back, with no result"),
    "renew": Listed("holding:renew", "lengthen the lease"),
    "ask": Listed("holding:ask", "ask a person; the task waits for the answer"),
    "spawn": Listed("holding:spawn", "make subtasks of the task you hold"),
    "run": Listed("running:run", "start agents on tasks, one after another"),
    "whoami": Listed("claiming:whoami", "who you are here, and what you hold"),
    "worktree add": Listed("worktrees:add", "make a git worktree for the task you hold"),
    "worktree list": Listed("worktrees:list_", "worktrees of claims, and what is in them"),
    "worktree remove": Listed("worktrees:remove", "take worktrees away that hold nothing of their own"),
    "land": Listed("worktrees:land", "merge your commits into a branch, and hand in"),
}
PLANNING = {
    "add": Listed("making:add", "add a task"),
    "link": Listed("making:link", "make one task wait for another"),
    "unlink": Listed("making:unlink", "take such a dependency away"),
    "publish": Listed("making:publish", "put a draft into the graph"),
    "plan check": Listed("planning:check", "say all that is wrong with plan files"),
    "plan apply": Listed("planning:apply", "make the tasks of a plan file, or bring them up to it"),
    "plan graph": Listed("planning:graph", "draw what waits for what: text, Mermaid, DOT"),
    "plan export": Listed("planning:export", "write a plan down as a plan file"),
    "schedule add": Listed("schedules:add", "make tasks at certain times, again and again"),
    "schedule list": Listed("schedules:list_", "the schedules, and when each fires next"),
    "schedule show": Listed("schedules:show", "one schedule, with its next ticks"),
    "schedule pause": Listed("schedules:pause", "have its ticks make nothing"),
    "schedule resume": Listed("schedules:resume", "let it go on with its next tick"),
    "schedule remove": Listed("schedules:remove", "take it away; what it made stays"),
    "schedule run": Listed("schedules:run_", "make its tasks now"),
    "trigger add": Listed("triggers:add", "make tasks when an event or a signed delivery fits"),
    "trigger list": Listed("triggers:list_", "the triggers, and how often each has fired"),
    "trigger show": Listed("triggers:show", "one trigger: what it hears and makes"),
    "trigger test": Listed("triggers:test", "what it would make of a sample; makes nothing"),
    "trigger pause": Listed("triggers:pause", "have it make nothing"),
    "trigger resume": Listed("triggers:resume", "let it hear what happens from now on"),
    "trigger remove": Listed("triggers:remove", "take it away; what it made stays"),
    "trigger rotate": Listed("triggers:rotate", "give a webhook a new secret"),
    "trigger watch": Listed("triggers:watch", "have it found out why so much of something fails"),
    "import beads": Listed("importing:from_beads", "take over issues of beads"),
    "import task-master": Listed("importing:from_task_master", "take over tasks of Task Master"),
    "import backlog": Listed("importing:from_backlog", "take over tasks of Backlog.md"),
}
LOOKING = {
    "status": Listed("statuses:status", "one screen: who leads, who works, how far it is"),
    "watch": Listed("watch.verb:watch", "the same, live and full screen"),
    "ready": Listed("looking:ready", "tasks that can be claimed now, best first"),
    "list": Listed("looking:list_", "tasks, by filter"),
    "show": Listed("looking:show", "everything about one task"),
    "why": Listed("looking:why", "why a task stands where it does"),
    "history": Listed("lineage:history", "who held a task, and what became of it"),
    "log": Listed("logs:log", "events, oldest first"),
    "wait": Listed("logs:wait", "stay until tasks have ended"),
    "budget list": Listed("budgets:list_", "what may be spent, what is left"),
    "budget show": Listed("budgets:show", "one budget, how it burned down, where it leads"),
    "budget alerts": Listed("budgets:alerts", "budgets that are half, nearly or wholly used up"),
    "budget projection": Listed("budgets:projection", "burn rate, days left, what open tasks will take"),
    "usage": Listed("statuses:usage", "tokens and money that agents have reported"),
    "model list": Listed("models:list_", "models by tier, what they cost, which are rate limited"),
    "model savings": Listed("models:savings", "what choosing models by tier has saved"),
    "model estimates": Listed("models:estimates", "how near estimates came to what tasks took"),
    "model routing": Listed("models:routing", "let claims tell which model to use, or not"),
    "dlq": Listed("looking:dlq", "dead letters: tasks that wait for a person"),
}
OPERATING = {
    "edit": Listed("operating:edit", "change a task"),
    "note": Listed("operating:note", "write a note on a task"),
    "answer": Listed("operating:answer", "answer a holder's question"),
    "pause": Listed("operating:pause", "hold tasks back"),
    "resume": Listed("operating:resume", "let paused tasks go on"),
    "cancel": Listed("operating:cancel", "call tasks off"),
    "retry": Listed("operating:retry", "give dead letters another run"),
    "reset": Listed("operating:reset", "start a completed task over"),
    "archive": Listed("operating:archive", "hide finished tasks"),
    "assign": Listed("operating:assign", "hold a task out to one agent"),
    "reassign": Listed("operating:reassign", "take a task from its holder and hold it out to another"),
    "approve": Listed("validating:approve", "say that a result is good"),
    "reject": Listed("validating:reject", "say that it is not, and why"),
    "adopt": Listed("operating:adopt", "take a kept result as the task's own"),
    "recover": Listed("operating:recover", "end a claim whose receipt is lost"),
    "abort": Listed("operating:abort", "end a claim that hangs"),
    "undo": Listed("operating:undo", "write the opposite of an earlier command"),
    "budget set": Listed("budgets:set_", "say what a project, dag, task or agent may spend"),
    "budget move": Listed("budgets:move", "give a part of one budget to another"),
    "budget remove": Listed("budgets:remove", "take a budget away"),
    "stop": Listed("operating:stop", "stop the line: nothing more is claimed there"),
    "go": Listed("operating:go", "start the line again"),
}
TEAM = {
    "join": Listed("team:join", "name yourself, once for a session"),
    "leave": Listed("team:leave", "end the session; what it holds is given back"),
    "agents": Listed("team:agents", "who is there"),
    "agent list": Listed("team:agents", "the same"),
    "agent show": Listed("agents:show", "one agent: what it can do, what it holds, whether it may claim"),
    "agent drain": Listed("agents:drain", "have an agent finish what it holds and take nothing more"),
    "agent terminate": Listed("agents:terminate", "end an agent: it claims nothing until it is resumed"),
    "agent resume": Listed("agents:resume", "let a drained or terminated agent claim again"),
    "msg": Listed("team:msg", "write to agents"),
    "inbox": Listed("team:inbox", "read your mail"),
    "reserve": Listed("reserving:reserve", "hold paths, ports or names for yourself"),
    "unreserve": Listed("reserving:unreserve", "let them go"),
    "locks": Listed("reserving:locks", "what is reserved, and by whom"),
    "lead": Listed("team:lead", "become the project's leader, or stay it"),
    "session": Listed("team:session", "what a session claimed, did and lost"),
}
UPKEEP = {
    "init": Listed("setting_up:init", "make a store here, and set agents up on request"),
    "setup": Listed("setting_up:setup", "tell agents of it: instructions, skill, MCP entry, hooks"),
    "prime": Listed("setting_up:prime", "where an agent stands, in few words"),
    "hook": Listed("setting_up:hook", "what agents' hooks run"),
    "trust": Listed("validating:trust", "allow what this repository brought and is risky, as it is now"),
    "config": Listed("upkeep:config", "the settings, and where each came from"),
    "daemon": Listed("upkeep:daemon", "settle what is due as it falls due; nothing needs it"),
    "db upgrade": Listed("upkeep:upgrade", "bring the store to this version's schema"),
    "db backup": Listed("upkeep:backup", "copy the store while it is in use"),
    "db restore": Listed("moving:restore", "put a backup in the store's place"),
    "db copy": Listed("moving:copy", "move a project to another store"),
    "db archive": Listed("moving:archive", "put finished tasks away"),
    "db check": Listed("upkeep:check", "look for damage"),
    "db clock": Listed("upkeep:clock", "how the clock stands; go on after one that was wrong"),
    "db new-epoch": Listed("upkeep:new_epoch", "void every receipt, after a restore"),
    "key create": Listed("keys:create", "make a key to sign in to a server with"),
    "key list": Listed("keys:list_", "the keys, without their secrets"),
    "key rotate": Listed("keys:rotate", "give a key a new secret"),
    "key revoke": Listed("keys:revoke", "make a key void"),
    "completion": Listed("completion:completion", "a completion script for your shell"),
    "doctor": Listed("doctor.verb:doctor", "look for trouble: store, clock, agents, stuck tasks; a fix for each"),
    "serve": Listed("serving:serve", "serve the store over HTTP: API, dashboard, MCP, metrics"),
    "mcp": Listed("serving:mcp", "serve MCP over standard input and output"),
    "demo": Listed("demo.verb:demo", "watch one agent die and another take over"),
}

SECTIONS = {
    "Working on tasks": WORKING,
    "Making work": PLANNING,
    "Looking": LOOKING,
    "For people: operating": OPERATING,
    "The team": TEAM,
    "Set-up and upkeep": UPKEEP,
}
VERBS: dict[str, Listed] = {name: verb for section in SECTIONS.values() for name, verb in section.items()}
ALIASES = {"submit": "done", "ls": "list"}
GROUPS = frozenset(name.split()[0] for name in VERBS if " " in name)

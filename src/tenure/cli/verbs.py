"""Every verb: where its function is, under which heading help shows it, and one line about it.

To add one: a line here, a function there. A name of two words is a verb under a noun.
"""

from __future__ import annotations

from typing import NamedTuple


class Listed(NamedTuple):
    where: str  # module of tenure.cli, and function
    text: str


WORKING = {
    "claim": Listed("claim:claim", "take a task, or the next best one"),
    "next": Listed("claim:next_", "look at what `claim` would take; takes nothing"),
    "start": Listed("holder_verbs:start", "say that work has begun"),
    "progress": Listed("holder_verbs:progress", "say how far the work is"),
    "checkpoint save": Listed("checkpoints:save", "keep what the next holder must know"),
    "checkpoint show": Listed("checkpoints:show", "print the last checkpoint, within a budget of tokens"),
    "artifact put": Listed("artifacts:put", "keep a file as an output of the task"),
    "artifact get": Listed("artifacts:get", "write an artifact into a folder"),
    "artifact list": Listed("artifacts:list_", "the artifacts of a task, of all its claims"),
    "done": Listed("holder_verbs:done", "hand in the result"),
    "fail": Listed("holder_verbs:fail", "say that the attempt failed, and why"),
    "release": Listed("holder_verbs:release", "give the task back, with no result"),
    "renew": Listed("holder_verbs:renew", "lengthen the lease"),
    "ask": Listed("holder_verbs:ask", "ask a person; the task waits for the answer"),
    "spawn": Listed("holder_verbs:spawn", "make subtasks of the task you hold"),
    "run": Listed("run:run", "start agents on tasks, one after another"),
    "whoami": Listed("claim:whoami", "who you are here, and what you hold"),
    "worktree add": Listed("worktrees:add", "make a git worktree for the task you hold"),
    "worktree list": Listed("worktrees:list_", "worktrees of claims, and what is in them"),
    "worktree remove": Listed("worktrees:remove", "take worktrees away that hold nothing of their own"),
    "land": Listed("worktrees:land", "merge your commits into a branch, and hand in"),
}
PLANNING = {
    "add": Listed("create:add", "add a task"),
    "link": Listed("create:link", "make one task wait for another"),
    "unlink": Listed("create:unlink", "take such a dependency away"),
    "publish": Listed("create:publish", "put a draft into the graph"),
    "plan check": Listed("plan:check", "say all that is wrong with plan files"),
    "plan apply": Listed("plan:apply", "make the tasks of a plan file, or bring them up to it"),
    "plan graph": Listed("plan:graph", "draw what waits for what: text, Mermaid, DOT"),
    "plan export": Listed("plan:export", "write a plan down as a plan file"),
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
    "status": Listed("status:status", "one screen: who leads, who works, how far it is"),
    "watch": Listed("watch.watch:watch", "the same, live and full screen"),
    "ready": Listed("task_reads:ready", "tasks that can be claimed now, best first"),
    "list": Listed("task_reads:list_", "tasks, by filter"),
    "show": Listed("task_reads:show", "everything about one task"),
    "why": Listed("task_reads:why", "why a task stands where it does"),
    "history": Listed("lineage:history", "who held a task, and what became of it"),
    "log": Listed("logs:log", "events, oldest first"),
    "wait": Listed("logs:wait", "stay until tasks have ended"),
    "budget list": Listed("budgets:list_", "what may be spent, what is left"),
    "budget show": Listed("budgets:show", "one budget, how it burned down, where it leads"),
    "budget alerts": Listed("budgets:alerts", "budgets that are half, nearly or wholly used up"),
    "budget projection": Listed("budgets:projection", "burn rate, days left, what open tasks will take"),
    "usage": Listed("status:usage", "tokens and money that agents have reported"),
    "model list": Listed("models:list_", "models by tier, what they cost, which are rate limited"),
    "model savings": Listed("models:savings", "what choosing models by tier has saved"),
    "model estimates": Listed("models:estimates", "how near estimates came to what tasks took"),
    "model routing": Listed("models:routing", "let claims tell which model to use, or not"),
    "dlq": Listed("task_reads:dlq", "dead letters: tasks that wait for a person"),
}
OPERATING = {
    "edit": Listed("operator_verbs:edit", "change a task"),
    "note": Listed("operator_verbs:note", "write a note on a task"),
    "answer": Listed("operator_verbs:answer", "answer a holder's question"),
    "pause": Listed("operator_verbs:pause", "hold tasks back"),
    "resume": Listed("operator_verbs:resume", "let paused tasks go on"),
    "cancel": Listed("operator_verbs:cancel", "call tasks off"),
    "retry": Listed("operator_verbs:retry", "give dead letters another run"),
    "reset": Listed("operator_verbs:reset", "start a completed task over"),
    "archive": Listed("operator_verbs:archive", "hide finished tasks"),
    "assign": Listed("operator_verbs:assign", "hold a task out to one agent"),
    "reassign": Listed("operator_verbs:reassign", "take a task from its holder and hold it out to another"),
    "approve": Listed("validation_verbs:approve", "say that a result is good"),
    "reject": Listed("validation_verbs:reject", "say that it is not, and why"),
    "adopt": Listed("operator_verbs:adopt", "take a kept result as the task's own"),
    "recover": Listed("operator_verbs:recover", "end a claim whose receipt is lost"),
    "abort": Listed("operator_verbs:abort", "end a claim that hangs"),
    "undo": Listed("operator_verbs:undo", "write the opposite of an earlier command"),
    "budget set": Listed("budgets:set_", "say what a project, dag, task or agent may spend"),
    "budget move": Listed("budgets:move", "give a part of one budget to another"),
    "budget remove": Listed("budgets:remove", "take a budget away"),
    "stop": Listed("operator_verbs:stop", "stop the line: nothing more is claimed there"),
    "go": Listed("operator_verbs:go", "start the line again"),
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
    "reserve": Listed("reserve:reserve", "hold paths, ports or names for yourself"),
    "unreserve": Listed("reserve:unreserve", "let them go"),
    "locks": Listed("reserve:locks", "what is reserved, and by whom"),
    "lead": Listed("team:lead", "become the project's leader, or stay it"),
    "session": Listed("team:session", "what a session claimed, did and lost"),
}
UPKEEP = {
    "init": Listed("setup:init", "make a store here, and set agents up on request"),
    "setup": Listed("setup:setup", "tell agents of it: instructions, skill, MCP entry, hooks"),
    "prime": Listed("setup:prime", "where an agent stands, in few words"),
    "hook": Listed("setup:hook", "what agents' hooks run"),
    "trust": Listed("validation_verbs:trust", "allow what this repository brought and is risky, as it is now"),
    "config": Listed("db:config", "the settings, and where each came from"),
    "daemon": Listed("db:daemon", "settle what is due as it falls due; nothing needs it"),
    "db upgrade": Listed("db:upgrade", "bring the store to this version's schema"),
    "db backup": Listed("db:backup", "copy the store while it is in use"),
    "db restore": Listed("db_moves:restore", "put a backup in the store's place"),
    "db copy": Listed("db_moves:copy", "move a project to another store"),
    "db archive": Listed("db_moves:archive", "put finished tasks away"),
    "db check": Listed("db:check", "look for damage"),
    "db clock": Listed("db:clock", "how the clock stands; go on after one that was wrong"),
    "db new-epoch": Listed("db:new_epoch", "void every receipt, after a restore"),
    "key create": Listed("keys:create", "make a key to sign in to a server with"),
    "key list": Listed("keys:list_", "the keys, without their secrets"),
    "key rotate": Listed("keys:rotate", "give a key a new secret"),
    "key revoke": Listed("keys:revoke", "make a key void"),
    "completion": Listed("completion:completion", "a completion script for your shell"),
    "doctor": Listed("doctor.doctor:doctor", "look for trouble: store, clock, agents, stuck tasks; a fix for each"),
    "serve": Listed("serve:serve", "serve the store over HTTP: API, dashboard, MCP, metrics"),
    "mcp": Listed("serve:mcp", "serve MCP over standard input and output"),
    "demo": Listed("demo.demo:demo", "watch one agent die and another take over"),
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

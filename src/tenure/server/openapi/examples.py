"""Example bodies of the main verbs; the tests send them to a real server."""

from __future__ import annotations

from typing import Any

RECEIPT = "B-003@1:28fe70692db85f6f8b0d7a0282097db6ab8dac3e"

BODIES: dict[str, dict[str, Any]] = {
    "define_project": {"default_track": "B"},
    "add": {
        "task": {
            "title": "Implement the repositories", "track": "B", "priority": "high", "tags": ["storage"],
            "spec": {"prompt": "One class for each aggregate."}, "touches": ["src/repositories/**"],
        }
    },
    "plan": {
        "title": "Storage", "name": "storage",
        "tasks": [
            {"title": "Design the schema", "name": "schema"},
            {"title": "Implement the repositories", "name": "repositories", "depends_on": ["schema"]},
        ],
    },
    "claim_next": {"agent": "ann", "session": "ann-1", "n": 1, "lease": 300},
    "claim": {"agent": "ann", "session": "ann-1"},
    "renew": {"receipt": RECEIPT},
    "progress": {"receipt": RECEIPT, "percent": 40, "step": "tests are red"},
    "checkpoint": {"receipt": RECEIPT, "data": {"next": "make the tests green", "files": ["src/repositories/user.py"]}},
    "usage": {"receipt": RECEIPT, "model": "opus", "fresh": 12000, "output": 900, "cost_usd": "0.0825"},
    "submit": {"receipt": RECEIPT, "summary": "Three repositories, with tests", "data": {"files": 3}},
    "fail": {"receipt": RECEIPT, "error_class": "environment", "message": "no disk space left"},
    "release": {"receipt": RECEIPT, "reason": "out of time"},
    "spawn": {"receipt": RECEIPT, "tasks": [{"title": "Migrate old rows", "name": "migrate"}], "wait": True},
    "edit": {"changes": {"priority": 5, "deadline": "2026-03-01T12:00:00Z"}},
    "register": {"session": "ann-1", "capabilities": ["python"], "models": ["opus"]},
    "send": {"sender": "ann", "to": "@all", "text": "The schema is on main."},
    "reserve": {"patterns": ["port:8080"], "agent": "ann", "session": "ann-1", "lease": 600},
}  # fmt: skip

BATCH = {
    "commands": [{"command": "renew", "receipt": RECEIPT}, {"command": "note", "task": "B-003", "text": "half done"}]
}

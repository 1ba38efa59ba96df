"""What is printed to be copied into a shell: each value in it is one quoted word."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import tenure
from tenure.cli.verbs import VERBS

SOURCE = Path(tenure.__file__).parent
_VERBS = "|".join(sorted({name.split()[0] for name in VERBS}))
COMMAND = re.compile(
    rf"(?:^|[`\s(;])(?:tenure (?:{_VERBS})\b|git (?:merge|add|branch|log|config|checkout|switch)\b"
    r"|export [A-Z_]+=|chmod \d+|echo )[^`\n]*"
)
QUOTED = re.compile(r"shell_word\(|shlex\.quote\(|\.join\(map\(shell_word")
# Not commands, or values of ours alone: file, and the source of the value.
OTHERS = {
    ("agents/fences.py", "receipt"),  # the text that a digest is made of
    ("agents/land.py", "self.task['ref']"),  # a line of git's log of refs
    ("agents/land.py", "self.generation"),
    ("cli/demo/demo.py", "task"),  # of the demo's own tasks
    ("cli/demo/demo.py", "self.receipt[:12]"),
    ("cli/claim.py", "own"),  # quoted before
    ("cli/doctor/team_checks.py", "words"),  # options of ours
    ("cli/operator_verbs.py", "several"),
    ("cli/operator_verbs.py", "' …' if len(undoable) > 20 else ''"),
    ("cli/main.py", "first"),  # verbs
    ("engine/verbs/claim_shares.py", "CLAIMS"),
}


def unquoted(text: ast.JoinedStr) -> list[str]:
    spelled, values = "", []
    for part in text.values:
        if isinstance(part, ast.Constant):
            spelled += str(part.value)
        elif isinstance(part, ast.FormattedValue):
            spelled += f"\0{len(values)}\0"
            values.append(ast.unparse(part.value))
    used = [values[int(n)] for found in COMMAND.finditer(spelled) for n in re.findall("\0(\\d+)\0", found[0])]
    return [value for value in used if not QUOTED.search(value)]


def test_every_value_in_a_command_to_be_copied_is_quoted() -> None:
    """Names of agents, projects, branches, tenants and files are of anybody's choice, and so are keys of a server."""
    found = {
        (str(path.relative_to(SOURCE)), value)
        for path in SOURCE.rglob("*.py")
        if "testing" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.JoinedStr)
        for value in unquoted(node)
    }
    assert found <= OTHERS, sorted(found - OTHERS)


def test_the_scan_sees_a_value_that_is_not_quoted() -> None:
    code = "f'run `tenure show {name}`, or git merge {branch}', f'export TENURE_AGENT={agent}', f'see {name}'"
    texts = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.JoinedStr)]
    assert [unquoted(text) for text in texts] == [["name", "branch"], ["agent"], []]

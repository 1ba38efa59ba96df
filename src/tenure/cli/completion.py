"""`completion`: small scripts for bash, zsh and fish, which ask tenure for the next word.

So the values of options are offered, not only their names: states, tracks, agents, keys of tasks, files. A shell asks
with `tenure completion SHELL --words …`; the last word is the one that is being typed. Names of members are what a
sign-in gives, so they are not offered.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from tenure.cli.main import SHARED, Answer, Option, Run, arg, function_of, options
from tenure.cli.verbs import ALIASES, VERBS

SHELLS = {
    "bash": 'add to ~/.bashrc:  eval "$(tenure completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(tenure completion zsh)"',
    "fish": "tenure completion fish > ~/.config/fish/completions/tenure.fish",
}
FILES = ":files"  # the shell itself completes names of files

# A shell must never evaluate a name: `compgen -W` would expand one. Each line is made one word by `printf %q` before it
# is offered. Inside of quotes that the user has opened, only names that need none are.
_BASH = r"""_tenure() {
  local word=${COMP_WORDS[COMP_CWORD]} line
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ":files" ]]; then
      compopt -o default 2>/dev/null
      return
    fi
    if [[ $word == [\"\']* ]]; then
      [[ $line == "${word:1}"* && $line != *[!A-Za-z0-9._@%+:,=-]* ]] && COMPREPLY+=("$line")
    else
      printf -v line %q "$line"
      COMPREPLY+=("$line")
    fi
  done < <(tenure completion bash --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _tenure tenure
"""
_ZSH = """#compdef tenure
_tenure() {
  local -a found
  found=("${(@f)$(tenure completion zsh --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ "$found[1]" == ":files" ]]; then _files; else compadd -a -- found; fi
}
compdef _tenure tenure
"""
_FISH = """function __tenure_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l found (tenure completion fish --words $words[2..-1] 2>/dev/null)
  if test "$found[1]" = ":files"
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $found
  end
end
complete -c tenure -f -a '(__tenure_complete)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


@options(
    arg("shell", choices=tuple(SHELLS), help="which one"),
    arg("--words", nargs="...", metavar="WORD", help="print what may complete the last of these (the scripts ask)"),
)
def completion(run: Run, given: Namespace) -> Answer:
    """Print a completion script: verbs, options, and their values, as states, tracks, agents and tasks."""
    if given.words is not None:
        found = candidates(run, [unquoted(word) for word in given.words or [""]])
        return Answer(found, "\n".join(found))
    script = _SCRIPTS[given.shell]
    return Answer({"shell": given.shell, "script": script, "use": SHELLS[given.shell]}, script)


def unquoted(word: str) -> str:
    """A word as typed, without its quotes; the last quote may be missing."""
    found, quote, is_escaped = "", "", False
    for character in word:
        if is_escaped:
            found, is_escaped = found + character, False
        elif character == "\\" and quote != "'":
            is_escaped = True
        elif character == quote or (not quote and character in "'\""):
            quote = "" if quote else character
        else:
            found += character
    return found


def candidates(run: Run, words: list[str]) -> list[str]:
    """What may complete the last word; FILES alone where names of files may."""
    *before, current = words
    verb, rest = _verb_in(before)
    if verb is None:
        return _fitting(_names_after(before), current)
    declared = [*getattr(function_of(VERBS[verb].where), "declared", ()), *SHARED]
    asked = _awaiting(declared, rest)
    if asked is not None:
        return _values(run, asked, current)
    flags = [name for names, _ in declared for name in names if name.startswith("-")]
    if current.startswith("-"):
        return _fitting(flags, current)
    positional = [option for option in declared if not option[0][0].startswith("-")]
    found = [value for option in positional for value in _values(run, option, current)]
    if FILES in found:
        return [FILES]
    under = [name.split()[1] for name in VERBS if name.startswith(f"{verb} ")] if not rest else []
    return _fitting([*under, *found], current) or _fitting(flags, current)


def _verb_in(words: list[str]) -> tuple[str | None, list[str]]:
    """The verb among the words, and the words after it; shared options may stand before it."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option = next((o for o in SHARED if words[at] in o[0]), None)
        at += 2 if option is not None and "action" not in option[1] and "=" not in words[at] else 1
    left = words[at:]
    if not left:
        return None, []
    first = ALIASES.get(left[0], left[0])
    if len(left) > 1 and f"{first} {left[1]}" in VERBS:
        return f"{first} {left[1]}", left[2:]
    return (first, left[1:]) if first in VERBS else (None, [])


def _names_after(before: list[str]) -> list[str]:
    """The verbs, or those under a noun."""
    noun = before[-1] if before else ""
    under = [name.split()[1] for name in VERBS if noun and name.startswith(f"{noun} ")]
    return under or sorted({name.split()[0] for name in [*VERBS, *ALIASES]})


def _awaiting(declared: list[Option], rest: list[str]) -> Option | None:
    """The option whose value is being typed."""
    if not rest:
        return None
    for names, settings in declared:
        takes = settings.get("action") in (None, "append") and names[0].startswith("-")
        if takes and rest[-1] in names:
            return names, settings
    return None


def _fitting(found: list[str], current: str) -> list[str]:
    """One candidate a line, so none with a line break in it or with a character that a terminal would obey."""
    return [one for one in dict.fromkeys(found) if one.startswith(current) and one.isprintable()]


def _values(run: Run, option: Option, current: str) -> list[str]:
    """The values of one argument: its choices, or those of its kind in this store."""
    names, settings = option
    if settings.get("choices"):
        return _fitting([str(choice) for choice in settings["choices"]], current)
    name = max(names, key=len).lstrip("-")
    kind = _KINDS.get(name) or _KINDS.get(str(settings.get("dest", ""))) or _KINDS.get(str(settings.get("metavar", "")))
    if kind is None or settings.get("type") is int:
        return []
    from tenure.core.errors import TenureError

    try:
        found = kind(run)
    except TenureError:
        return []  # no store here, or it is unavailable: completion prints no errors
    return found if found == [FILES] else _fitting(found, current)


def _states(run: Run) -> list[str]:
    from tenure.core.lifecycle import STATES

    return [*STATES, "draft", "dead-letter"]


def _open_tasks(run: Run) -> list[str]:
    from tenure.core.lifecycle import OPEN

    return [task["key"] for task in run.client.tasks(state=OPEN, limit=200, order="-updated_at")]


def _kinds_of_events(run: Run) -> list[str]:
    from tenure.core.events import KINDS

    return [*KINDS, *sorted({kind.partition(".")[0] for kind in KINDS})]


def _recipients(run: Run) -> list[str]:
    return ["@all", "@leader", "@idle", *_agents(run)]


def _agents(run: Run) -> list[str]:
    return [agent["name"] for agent in run.client.agents()]


def _recipes(run: Run) -> list[str]:
    from tenure.agents.recipes import names

    return [*names(), "all"]


def _tiers(run: Run) -> list[str]:
    from tenure.core.priority import TIERS

    return list(TIERS)


def _settings(run: Run) -> list[str]:
    from tenure.config import SETTINGS

    return list(SETTINGS)


def _error_classes(run: Run) -> list[str]:
    from tenure.core.retry import CLASSES

    return list(CLASSES)


def _validators(run: Run) -> list[str]:
    from tenure.validators.known import names

    return ["none", "review", *names()]


def _roles(run: Run) -> list[str]:
    from tenure.core.tenants import MEMBER_ROLES

    return list(MEMBER_ROLES)


def _limits(run: Run) -> list[str]:
    from tenure.core.inputs import LIMITS

    return [f"{name}=" for name in LIMITS]


def _tenant_tiers(run: Run) -> list[str]:
    from tenure.core.tenant_limits import TIERS

    return list(TIERS)


def _isolations(run: Run) -> list[str]:
    from tenure.core.tenants import ISOLATIONS

    return list(ISOLATIONS)


def _presets(run: Run) -> list[str]:
    from tenure.core.compliance import DAYS, NONE

    return [*DAYS, NONE]


def _strategies(run: Run) -> list[str]:
    from tenure.core.retry import STRATEGIES

    return list(STRATEGIES)


# By the option's name, else by what its value is called.
_KINDS: dict[str, Callable[[Any], list[str]]] = {
    "state": _states,
    "track": lambda run: [track["code"] for track in run.client.tracks()],
    "project": lambda run: list(run.client.projects()),
    "agents": _recipes,
    "agent": _agents, "holder": _agents, "by": _agents, "from": _agents, "AGENT": _agents, "for-agent": _agents,
    "to": _recipients,
    "task": _open_tasks, "TASK": _open_tasks, "after": _open_tasks, "parent": _open_tasks, "needs": _open_tasks,
    "kind": _kinds_of_events, "on": _kinds_of_events,
    "priority": _tiers, "class": _error_classes, "validate": _validators,
    "key": _settings, "limits": _limits, "compliance": _presets, "retry": _strategies,
    "ROLE": _roles, "tier": _tenant_tiers, "isolation": _isolations,
    "TENANT": lambda run: [tenant["name"] for tenant in run.client.tenants()],
    "tenant": lambda run: [tenant["name"] for tenant in run.client.tenants()],
    "only": lambda run: list(run.client.projects()),
    "dag": lambda run: [dag["id"] for dag in run.client.dags()],
    "dir": lambda run: [FILES], "FILE": lambda run: [FILES], "DIR": lambda run: [FILES], "file": lambda run: [FILES],
    "backup": lambda run: [FILES], "target": lambda run: [FILES],
}  # fmt: skip

"""`completion`: scripts for bash, zsh and fish, made from the table of verbs."""

from __future__ import annotations

from argparse import Namespace

from tenure.cli.main import SHARED, Answer, Run, arg, function_of, options
from tenure.cli.verbs import ALIASES, VERBS

SHELLS = {
    "bash": 'add to ~/.bashrc:  eval "$(tenure completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(tenure completion zsh)"',
    "fish": "tenure completion fish > ~/.config/fish/completions/tenure.fish",
}


@options(
    arg("shell", choices=tuple(SHELLS), help="which one"),
    arg("--keys", action="store_true", help="print keys of open tasks, one a line (the scripts call this)"),
)
def completion(run: Run, given: Namespace) -> Answer:
    """Print a completion script: verbs, their options, and the keys of open tasks."""
    if given.keys:
        keys = _keys(run)
        return Answer(keys, "\n".join(keys))
    script = {"bash": bash, "zsh": zsh, "fish": fish}[given.shell]()
    return Answer({"shell": given.shell, "script": script, "use": SHELLS[given.shell]}, script)


def _keys(run: Run) -> list[str]:
    """Keys of tasks that are not finished; nothing where there is no store: completion prints no errors."""
    from tenure.core.errors import TenureError
    from tenure.core.lifecycle import OPEN

    try:
        return [task["key"] for task in run.client.tasks(state=OPEN, limit=200, order="-updated_at")]
    except TenureError:
        return []


def words() -> dict[str, list[str]]:
    """Each verb, or noun, and what may follow it."""
    shared = [name for names, _ in SHARED for name in names]
    follow: dict[str, list[str]] = {}
    for name, verb in VERBS.items():
        declared = getattr(function_of(verb.where), "declared", ())
        flags = [n for names, _ in declared for n in names if n.startswith("-")]
        noun, _, under = name.partition(" ")
        if under:
            follow.setdefault(noun, []).append(under)
        follow[name] = [*flags, *shared]
    for alias, name in ALIASES.items():
        follow[alias] = follow[name]
    return follow


def bash() -> str:
    follow = words()
    cases = "\n".join(f'    "{name}") words="{" ".join(options)}" ;;' for name, options in follow.items())
    verbs = " ".join(sorted({name.split()[0] for name in follow}))
    return f"""_tenure() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{verbs}"
  else
    local verb="${{COMP_WORDS[1]}}"
    case "$verb ${{COMP_WORDS[2]}}" in
{_pairs(follow)}
    esac
    [ -n "$words" ] || case "$verb" in
{cases}
    esac
    case "$word" in -*) ;; *) words="$words $(tenure completion bash --keys 2>/dev/null)" ;; esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -F _tenure tenure
"""


def _pairs(follow: dict[str, list[str]]) -> str:
    return "\n".join(f'    "{name}") words="{" ".join(flags)}" ;;' for name, flags in follow.items() if " " in name)


def zsh() -> str:
    # zsh runs bash's completions as they are
    return "autoload -U +X bashcompinit && bashcompinit\n" + bash()


def fish() -> str:
    lines = ["complete -c tenure -f"]
    for name, verb in VERBS.items():
        noun, _, under = name.partition(" ")
        text = verb.text.replace("'", "’")
        if under:
            lines.append(f"complete -c tenure -n '__fish_use_subcommand' -a {noun}")
            lines.append(f"complete -c tenure -n '__fish_seen_subcommand_from {noun}' -a {under} -d '{text}'")
        else:
            lines.append(f"complete -c tenure -n '__fish_use_subcommand' -a {noun} -d '{text}'")
    for name, following in words().items():
        first = name.split()[0]
        for flag in following:
            style = "-l " + flag[2:] if flag.startswith("--") else "-s " + flag[1:]
            if flag.startswith("-"):
                lines.append(f"complete -c tenure -n '__fish_seen_subcommand_from {first}' {style}")
    lines.append("complete -c tenure -n 'not __fish_use_subcommand' -a '(tenure completion fish --keys 2>/dev/null)'")
    return "\n".join(dict.fromkeys(lines)) + "\n"

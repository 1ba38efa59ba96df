"""The reference pages of the command line: verbs, exit codes, settings."""

from __future__ import annotations

from tenure import config
from tenure.cli.answers import EXITS, OF_ERROR
from tenure.cli.main import function_of, parser_of
from tenure.cli.verbs import ALIASES, SECTIONS
from tenure.core.named_settings import NAMED
from tenure.core.setting_values import Priority, Seconds
from tenure.trust.risky_settings import is_risky
from tests.docs.tables import table


def command_line() -> str:
    parts = [
        "# The command line\n",
        "Every verb takes `--json`: exactly one JSON value on stdout, in every case; an error is",
        '`{"error": {"code": …, "message": …, "hint": …}}`. Instants are RFC 3339 UTC; beside one that a program acts',
        "on stands a duration in seconds.\n",
        "[Exit codes](exit-codes.md) · [Settings](settings.md) · [Outcomes](outcomes.md)\n",
    ]
    for title, section in SECTIONS.items():
        parts += [f"## {title}\n"]
        for name, verb in section.items():
            also = [alias for alias, meant in ALIASES.items() if meant == name]
            parts += [f"### `tenure {name}`\n"]
            if also:
                parts += [f"Also `tenure {also[0]}`.\n"]
            help = parser_of(name, function_of(verb.where)).format_help()
            own = help.partition("\neverywhere:")[0].rstrip()
            parts += [f"```text\n{own}\n```\n"]
    shared = help.partition("\neverywhere:")[2].rstrip()
    return "\n".join([*parts, "## Everywhere\n", f"```text{shared}\n```\n"])


def exit_codes() -> str:
    rows = []
    for code, meaning in EXITS.items():
        kinds = [name for name, number in OF_ERROR.items() if number == code]
        rows.append((str(code), meaning, ", ".join(f"`{name}`" for name in kinds)))
    return "# Exit codes\n\n" + table(("code", "meaning", "errors"), rows)


def _kind(kind: type) -> str:
    return {Seconds: "duration", Priority: "priority"}.get(kind, kind.__name__)


def settings() -> str:
    rows = [
        (
            f"`{key}`", _kind(setting.type), "" if setting.default is None else f"`{setting.default}`",
            f"`TENURE_{key.upper().replace('.', '_')}`", setting.meaning,
        )
        for key, setting in config.SETTINGS.items()
    ]  # fmt: skip
    named = [
        (
            f"`{key}`", _kind(setting.type), "" if setting.default in (None, "", []) else f"`{setting.default}`",
            setting.meaning,
        )
        for key, setting in NAMED.items()
    ]  # fmt: skip
    return (
        "# Settings\n\n`tenure.toml` at the repository's root, for everybody; `.tenure/config.toml`, for this clone; "
        "the file that `TENURE_CONFIG`\nnames; the environment; flags. Each beats the one before; `tenure config` "
        "shows every value and its origin,\n`tenure config KEY VALUE` changes one for this clone, with `--shared` for "
        "everybody. A duration is a number of seconds, or\na text such as `10m` or `2h`; a path in `url` or "
        "`artifacts` is relative to the folder that has `.tenure`, or the named file.\n\n"
        "`.tenure/config.toml` is looked for upward from the working folder, and counts with or without a store beside "
        "it, on\nevery store and for clients of a server. A nearer one without a store adds to that of the store.\n\n"
        "`TENURE_CONFIG=/etc/tenure/config.toml` is for a machine: the file counts without `tenure trust`, if it is "
        "root's and\nwritable by root alone, or lies below your own configuration folder (`~/.config`) with mode 0600; "
        "in a git work tree\nnever. Any other file is refused as `UNTRUSTED`. Agents, hooks and validators do not "
        "inherit the variable.\n\n"
        "In a file, "
        + ", ".join(f"`{key}`" for key in config.SETTINGS if is_risky(key) and not key.startswith("serve."))
        + ", `sinks.…`, `notify.…`, `hooks.on_…` and `serve.…` count only if the file is your own or you\n"
        "[allowed it](../how-to/trust-a-repository.md).\n\n"
        + table(("setting", "type", "default", "environment", "meaning"), rows)
        + "\n`TENURE_OWNER_URL`, in the environment alone, is the URL of the database role that owns the tables of a "
        "store under\n[row-level security](../how-to/separate-tenants-in-the-database.md), for upgrades and "
        "`tenure db rls`. It counts only for the same cluster and database as the store's URL.\n"
        + "\n## Settings with a name\n\nOf sinks, channels for notices and local hooks there may be several, in files "
        "alone: `NAME` is a name of your choice,\n`KIND` a kind of event with `_` for its dot. Nothing is sent and "
        "nothing runs before you have allowed a file that is not\nyour own.\n\n"
        + table(("setting", "type", "default", "meaning"), named)
    )

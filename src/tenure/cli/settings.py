"""`config`: show the settings, and change one in its file."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from tenure.cli.main import Answer, Run, Usage, arg, options
from tenure.cli.text_format import table
from tenure.config import SETTINGS, BadConfig, Settings, checked, read_settings, setting_of, without_password
from tenure.core.errors import TenureError
from tenure.core.setting_values import Priority, Seconds, from_text
from tenure.locations import LOCAL, SHARED, find_folder, local_files, shared_file
from tenure.trust.risky_settings import shown


@options(
    arg("key", nargs="?", help="one setting (else all)"),
    arg("value", nargs="?", help="its new value, for this clone: .tenure/config.toml"),
    arg("--shared", action="store_true", help="write tenure.toml, for everybody"),
    arg("--unset", action="store_true", help="remove it from the file"),
)
def config(run: Run, given: Namespace) -> Answer:
    """Show the settings, their values, and where each came from: default, a file, the environment, or a flag.

    With a value, or --unset, one is changed in its file. Errors in a file or variable are reported; the other settings
    are shown.
    """
    problems: list[TenureError] = []
    run.settings = read_settings(
        run.folder, run.environ, {"project": given.project, "tenant": given.tenant}, problems=problems
    )
    if given.key is not None:
        _check_known(given.key, run.settings)
    elif given.unset or given.shared:
        raise Usage("config: --unset and --shared change one setting: name it")
    if given.value is not None or given.unset:
        if given.value is not None and given.unset:
            raise Usage(f"config: either a value for {given.key}, or --unset")
        return _changed(run, given)
    for problem in problems:
        run.warn(problem.message)
    value = _shown(run.settings, [given.key] if given.key is not None else run.settings)
    if given.key is not None:
        return Answer(value, _spelt(value[given.key]["value"]) or "not set")
    text = table([(key, _spelt(one["value"]), one["origin"]) for key, one in value.items()])
    return Answer(value, text, 11 if problems else 0)


def _check_known(key: str, settings: Settings) -> None:
    if key not in list(settings):  # `in` would read it
        from tenure.core.inputs import suggestion

        raise Usage(f"config: unknown setting {key!r}{suggestion(key, settings)}", "`tenure config` lists them")


def _shown(settings: Settings, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Settings as they may be printed."""
    value = {}
    for key in keys:
        one, setting = settings.seen(key), setting_of(key)
        if setting is None:
            continue
        given = without_password(one.value) if key == "url" and one.value else one.value
        value[key] = {"value": shown(key, given), "origin": one.origin, "meaning": setting.meaning}
    return value


def _changed(run: Run, given: Namespace) -> Answer:
    """Write one setting into its file, and show what counts now."""
    from tenure.agents.recipes.pieces import CannotMerge
    from tenure.agents.recipes.settings_files import read, write

    key = given.key
    if key not in SETTINGS:
        raise Usage(f"config: {key} is one of several; change it in its file", "docs: reference/settings")
    path = _file(run, is_shared=given.shared)
    try:
        before = read(path)
        after = _edited(
            path, before or "", key, None if given.unset else _as_toml(path, key, given.value, is_shared=given.shared)
        )
        if after != (before or ""):
            write(path, after, mode=None if given.shared else 0o600)
    except CannotMerge as error:
        raise BadConfig(f"{path} {error}") from None
    run.settings = read_settings(
        run.folder, run.environ, {"project": given.project, "tenant": given.tenant}, problems=[]
    )
    now_is = _shown(run.settings, [key])
    one = now_is[key]
    text = f"{key} is {_spelt(one['value']) or 'not set'} ({one['origin']})"
    if one["origin"] != path and not given.unset:
        text += f"; the new value in {path} counts where that is not set"
    return Answer(now_is, text)


def _file(run: Run, *, is_shared: bool) -> str:
    """The file that a change is written to; a missing `.tenure` is made as by `init`."""
    from tenure.agents import new_store

    folder = find_folder(run.folder)
    if is_shared:
        return shared_file(run.folder) or os.path.join(os.path.dirname(folder) if folder else run.folder, SHARED)
    files = local_files(run.folder)
    if files:
        return files[-1]
    return os.path.join(folder or new_store.make_folder(new_store.place_for(run.folder)), LOCAL)


def _as_toml(path: str, key: str, text: str, *, is_shared: bool) -> Any:
    """The value as the file has it: a duration and a priority as they were written."""
    from tenure.core.errors import InvalidInput

    kind, words = SETTINGS[key].type, SETTINGS[key].words
    try:
        value = from_text(kind, words, text)
    except InvalidInput as error:
        raise Usage(f"config: {key} is {text!r:.80}; it {error.message}") from None
    if kind is Seconds and not text.replace(".", "", 1).isdigit():
        value = text
    if kind is Priority and text.isdigit():
        value = int(text)
    checked(path, key, value, is_shared=is_shared)
    return value


def _edited(path: str, text: str, key: str, value: Any) -> str:
    """The file with another value, or without the setting; its comments stay."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    from tenure.core.toml_text import parsed

    parsed(path, text.encode())
    try:
        document: Any = tomlkit.parse(text)
        *sections, name = key.split(".")
        place = document
        for section in sections:
            if section not in place:
                if value is None:
                    return text
                place[section] = tomlkit.table()
            place = place[section]
        if value is not None:
            place[name] = value
        elif name in place:
            del place[name]
        return tomlkit.dumps(document)
    except (TOMLKitError, TypeError, AttributeError) as error:
        raise BadConfig(f"{path}: {key} cannot be changed there: {error}", "change it in the file") from None


def _spelt(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else f"{value:g}" if isinstance(value, float) and value < 1e6 else str(value)

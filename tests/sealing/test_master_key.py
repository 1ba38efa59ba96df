"""Where the master key comes from, and what is said where there is none."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from base64 import b64encode
from pathlib import Path

import pytest

from tenure.config import BadConfig
from tenure.core.errors import SecretsOff
from tenure.sealing.master_key import COMMAND, EMBEDDED, FILE, VALUE, KeySource, id_of

KEY, OTHER = bytes(range(32)), bytes(range(32, 64))
TEXT = b64encode(KEY).decode()


def private(path: Path, content: str, mode: int = 0o600) -> str:
    path.write_text(content)
    path.chmod(mode)
    return str(path)


def keys(environ: dict[str, str]) -> list[bytes]:
    return [one.key for one in KeySource(environ).keys().keys]


# --- sources ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [TEXT, KEY.hex(), KEY.hex().upper(), f"  {TEXT}\n"])
def test_a_key_is_base64_or_hex(text: str) -> None:
    assert keys({VALUE: text}) == [KEY]


def test_several_keys_are_the_current_one_and_those_before_it() -> None:
    assert keys({VALUE: f"{TEXT}, {OTHER.hex()}\n{TEXT}"}) == [KEY, OTHER]


@pytest.mark.parametrize("text", ["short", TEXT[:-4], TEXT + TEXT, "ß" * 40, KEY.hex()[:-2], "a b c"])
def test_what_is_not_a_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(BadConfig) as found:
        keys({VALUE: text})
    assert VALUE in found.value.message
    assert "openssl rand -base64 32" in (found.value.hint or "")
    assert text[:20] not in found.value.message


def test_too_many_keys_are_refused() -> None:
    with pytest.raises(BadConfig, match="has 11 keys; at most 10"):
        keys({VALUE: " ".join(bytes([n] * 32).hex() for n in range(11))})


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_that_only_its_owner_can_read_gives_the_key(tmp_path: Path, mode: int) -> None:
    assert keys({FILE: private(tmp_path / "key", TEXT + "\n", mode)}) == [KEY]


def test_a_link_to_a_private_file_is_followed_as_mounted_secrets_need_it(tmp_path: Path) -> None:
    private(tmp_path / "data", TEXT)
    (tmp_path / "key").symlink_to(tmp_path / "data")
    assert keys({FILE: str(tmp_path / "key")}) == [KEY]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o602])
def test_a_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(BadConfig, match=rf"by others \(mode {mode:04o}\)") as found:
        keys({FILE: private(tmp_path / "key", TEXT, mode)})
    assert "chmod 600" in (found.value.hint or "")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a file of another user")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = private(tmp_path / "key", TEXT)
    os.chown(path, 12345, 12345)
    with pytest.raises(BadConfig, match="belongs to another user"):
        keys({FILE: path})


def test_a_pipe_or_folder_is_not_a_key_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises((BadConfig, SecretsOff), match=r"not a file|cannot be read"):
            keys({FILE: str(path)})


def test_a_missing_or_empty_file_means_secrets_are_off(tmp_path: Path) -> None:
    with pytest.raises(SecretsOff, match="cannot be read: No such file"):
        keys({FILE: str(tmp_path / "none")})
    with pytest.raises(SecretsOff, match="is empty"):
        keys({FILE: private(tmp_path / "key", " \n")})


def test_a_command_prints_the_key_without_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "key service.py"
    script.write_text(
        "import os, sys\n"
        "assert sys.argv[1:] == ['$HOME;x'], sys.argv\n"
        "assert 'TENURE_MASTER_KEY_COMMAND' not in os.environ\n"
        "print(os.environ['GIVEN'])\n"
        "print('a warning', file=sys.stderr)\n"
    )
    assert keys({COMMAND: f"{sys.executable} '{script}' '$HOME;x'", "GIVEN": TEXT}) == [KEY]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("false", "ended with 1"),
        ("/no/such/program", "did not run"),
        ("true", "is empty"),
    ],
)
def test_a_command_that_gives_no_key_means_secrets_are_off(command: str, said: str) -> None:
    with pytest.raises(SecretsOff, match=said):
        keys({COMMAND: command, "PATH": os.environ["PATH"]})


def test_a_command_that_cannot_be_split_is_named() -> None:
    with pytest.raises(BadConfig, match="No closing quotation"):
        keys({COMMAND: "get 'key"})


def test_a_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.core.limits.MASTER_KEY_TIMEOUT", 0.2)
    with pytest.raises(SecretsOff, match=r"did not end within 0\.2 s"):
        keys({COMMAND: f"{sys.executable} -c 'import time; time.sleep(60)'"})


def test_two_sources_are_refused_since_it_must_be_certain_which_key_seals(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="TENURE_MASTER_KEY and TENURE_MASTER_KEY_FILE are both set"):
        keys({VALUE: TEXT, FILE: private(tmp_path / "key", TEXT)})


def test_a_source_is_read_once_and_an_empty_variable_is_none() -> None:
    environ = {VALUE: TEXT, FILE: ""}
    source = KeySource(environ)
    first = source.keys()
    environ[VALUE] = OTHER.hex()
    assert source.keys() is first
    assert first.current.id == id_of(KEY)


# --- embedded -----------------------------------------------------------------------------------------------


def embedded(folder: Path, said: list[str] | None = None, random: bytes = KEY) -> KeySource:
    environ = {"TENURE_STATE": str(folder / "state")}
    return KeySource(environ, is_embedded=True, random=lambda _: random, say=(said if said is not None else []).append)


def test_an_embedded_store_gets_a_key_with_its_first_secret_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    assert embedded(tmp_path, said).keys(make=True).current.key == KEY
    path = tmp_path / "state" / EMBEDDED
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert said == [f"made the master key {path}: back it up, since without it no sealed value can be opened"]
    assert list(path.parent.iterdir()) == [path]
    assert embedded(tmp_path, said, OTHER).keys(make=True).current.key == KEY
    assert len(said) == 1


def test_opening_never_makes_a_key(tmp_path: Path) -> None:
    with pytest.raises(SecretsOff, match="is missing") as found:
        embedded(tmp_path).keys()
    assert "backup" in (found.value.hint or "")
    assert not (tmp_path / "state").exists()


def test_a_server_makes_no_key(tmp_path: Path) -> None:
    with pytest.raises(SecretsOff, match="no master key"):
        KeySource({"TENURE_STATE": str(tmp_path)}).keys(make=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.getuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_means_secrets_are_off_and_not_a_key_in_tmp(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SecretsOff, match="no master key can be made"):
        embedded(tmp_path).keys(make=True)


def test_a_state_folder_that_is_a_file_means_secrets_are_off(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(SecretsOff, match="no master key can be made"):
        embedded(tmp_path).keys(make=True)


def test_a_key_that_another_process_makes_meanwhile_is_kept(tmp_path: Path) -> None:
    said: list[str] = []

    def random(_: int) -> bytes:
        embedded(tmp_path).keys(make=True)
        return OTHER

    environ = {"TENURE_STATE": str(tmp_path / "state")}
    source = KeySource(environ, is_embedded=True, random=random, say=said.append)
    assert source.keys(make=True).current.key == KEY
    assert said == []


def test_of_many_at_once_one_makes_the_key_and_all_use_it(tmp_path: Path) -> None:
    said: list[str] = []
    found: list[bytes] = []
    start = threading.Barrier(8)

    def first(number: int) -> None:
        source = embedded(tmp_path, said, bytes([number]) * 32)
        start.wait()
        found.append(source.keys(make=True).current.key)

    threads = [threading.Thread(target=first, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(said) == 1


def test_nothing_heavy_is_imported_before_a_secret_is_met() -> None:
    code = (
        "import sys, tenure.sealing.cipher, tenure.sealing.master_key, tenure.core.sealed\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('cryptography', 'subprocess')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- rotation -----------------------------------------------------------------------------------------------


def test_a_new_key_is_put_before_the_others_and_a_running_process_finds_it(tmp_path: Path) -> None:
    environ = {"TENURE_STATE": str(tmp_path)}
    running, other = KeySource(environ, is_embedded=True), KeySource(environ, is_embedded=True)
    (first,) = running.keys(make=True).keys
    path = other.renew()
    assert path == str(tmp_path / EMBEDDED)
    assert (tmp_path / EMBEDDED).stat().st_mode & 0o777 == 0o600
    second, kept = other.keys().keys
    assert (kept, second.key != first.key) == (first, True)
    assert running.keys().keys == (first,)
    assert running.again().named(second.id) == second
    assert list(tmp_path.iterdir()) == [tmp_path / EMBEDDED]


def test_of_many_new_keys_at_once_none_is_lost(tmp_path: Path) -> None:
    environ = {"TENURE_STATE": str(tmp_path)}
    KeySource(environ, is_embedded=True).keys(make=True)
    threads = [threading.Thread(target=KeySource(environ, is_embedded=True).renew) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(KeySource(environ, is_embedded=True).keys().keys) == 7


def test_a_new_key_waits_for_another_that_is_being_written(tmp_path: Path) -> None:
    environ, path = {"TENURE_STATE": str(tmp_path)}, tmp_path / EMBEDDED
    KeySource(environ, is_embedded=True).keys(make=True)
    first = path.read_text()
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        thread = threading.Thread(target=KeySource(environ, is_embedded=True).renew)
        thread.start()
        thread.join(0.5)  # it cannot end before the lock does
        private(tmp_path / "new", f"{OTHER.hex()}\n{first}")
        (tmp_path / "new").replace(path)
    thread.join()
    known = [one.key for one in KeySource(environ, is_embedded=True).keys().keys]
    assert (len(known), known[1:]) == (3, [OTHER, bytes.fromhex(first)])


def test_a_file_that_is_full_and_a_key_of_somebody_else_are_left_as_they_are(tmp_path: Path) -> None:
    environ = {"TENURE_STATE": str(tmp_path)}
    source = KeySource(environ, is_embedded=True)
    assert source.renew() is None  # a key that is gone is not replaced: that would hide the loss
    assert list(tmp_path.iterdir()) == []
    source.keys(make=True)
    for _ in range(9):
        source.renew()
    before = (tmp_path / EMBEDDED).read_text()
    with pytest.raises(BadConfig):
        source.renew()
    assert (tmp_path / EMBEDDED).read_text() == before
    assert KeySource({VALUE: TEXT}, is_embedded=True).renew() is None
    assert KeySource({}, is_embedded=False).renew() is None

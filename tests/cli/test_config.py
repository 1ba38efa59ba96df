"""Finding the store, and the settings with their origins."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tenure.config import BadConfig, find_home, read_settings, without_password
from tenure.trust.grants import Trusted, Untrusted
from tests.cli.conftest import Tenure


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_the_store_is_found_from_below(tenure: Tenure) -> None:
    deep = tenure.folder / "src" / "deep"
    deep.mkdir(parents=True)
    assert tenure.process("add", "One", cwd=deep).code == 0
    assert len(tenure("list", "--json").json) == 1
    assert not (deep / ".tenure").exists()


def test_the_store_is_found_from_a_linked_worktree_elsewhere(bare: Tenure, tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    assert bare.process("init", cwd=main).code == 0
    elsewhere = tmp_path / "elsewhere"
    git(main, "worktree", "add", "-q", str(elsewhere))
    (elsewhere / "sub").mkdir()
    assert bare.process("add", "One", cwd=elsewhere / "sub").code == 0
    assert len(bare.process("list", "--json", cwd=main).json) == 1


def test_a_folder_that_is_not_there_is_a_usage_error(bare: Tenure) -> None:
    said = bare.process("-C", "/no/such/folder", "list")
    assert said.code == 2
    assert "/no/such/folder" in said.err


def test_each_layer_beats_the_one_before(tenure: Tenure) -> None:
    def lease(**environ: str) -> tuple[object, str]:
        entry = tenure.process("config", "lease", "--json", **environ).json["lease"]
        return entry["value"], Path(entry["origin"]).name

    assert lease() == (1800.0, "default")
    (tenure.folder / "tenure.toml").write_text("lease = 60\n")
    assert lease() == (60.0, "tenure.toml")
    (tenure.folder / ".tenure" / "config.toml").write_text("lease = 120\n")
    assert lease() == (120.0, "config.toml")
    assert lease(TENURE_LEASE="240") == (240.0, "TENURE_LEASE")
    assert tenure("add", "One").code == 0
    assert tenure.process("claim", "--json").json["lease"] == 120


def test_unknown_keys_and_wrong_types_are_errors_with_a_suggestion(tenure: Tenure) -> None:
    file = tenure.folder / "tenure.toml"
    file.write_text("leas = 60\n")
    said = tenure("list")
    assert said.code == 11
    assert "did you mean lease?" in said.err
    file.write_text('lease = "long"\n')
    assert tenure("list").code == 11
    file.write_text("[done\n")
    assert tenure("list", "--json").json["error"]["code"] == "BAD_CONFIG"
    file.unlink()
    assert tenure.process("list", TENURE_LEASE="long").code == 11
    assert tenure.process("list", TENURE_DONE_COMMIT="maybe").code == 11


def test_a_url_in_the_environment_names_another_store(tenure: Tenure, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    assert tenure.process("init", cwd=other).code == 0
    tenure.process("add", "There", TENURE_URL=str(other / ".tenure" / "tenure.db"))
    assert tenure("list", "--json").json == []
    assert len(tenure.process("list", "--json", cwd=other).json) == 1
    assert tenure.process("list", TENURE_URL="nosuch://x").code == 8
    missing = tenure.process("list", TENURE_URL=str(other / "missing.db"))
    assert missing.code == 1
    assert not (other / "missing.db").exists()


def test_the_first_project_is_named_after_its_folder(bare: Tenure, tmp_path: Path) -> None:
    folder = tmp_path / "my shop@home"
    folder.mkdir()
    assert bare.process("init", "--json", cwd=folder).json["project"] == "my-shop-home"
    assert bare.process("add", "One", cwd=folder).code == 0
    assert bare.process("whoami", "--json", cwd=folder).json["project"] == "my-shop-home"
    # the name goes with the store, not with the folder that one stands in
    store = str(folder / ".tenure" / "tenure.db")
    assert bare.process("config", "project", TENURE_URL=store).out == "my-shop-home\n"
    folder.rename(tmp_path / "renamed")
    assert len(bare.process("list", "--json", cwd=tmp_path / "renamed").json) == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("/srv/a:b@c/tenure.db", "/srv/a:b@c/tenure.db"),
        ("postgresql://ann@db/shop", "postgresql://ann@db/shop"),
        ("postgresql://ann:s3cret@db:5432/shop", "postgresql://ann:…@db:5432/shop"),
        ("postgresql://db/shop?password=s3cret&sslmode=require", "postgresql://db/shop?password=…&sslmode=require"),
        ("postgresql://db/shop?user=ann&password=s3cret", "postgresql://db/shop?user=ann&password=…"),
        ("postgresql://ann:p@ss@db/shop", "postgresql://ann:…@db/shop"),
    ],
)
def test_no_password_is_ever_printed(bare: Tenure, url: str, shown: str) -> None:
    assert without_password(url) == shown
    assert bare.process("config", "url", TENURE_URL=url).out == shown + "\n"
    for words in (("config", "--json"), ("list",), ("doctor",)):
        said = bare.process(*words, TENURE_URL=url.replace("@db", "@127.0.0.1:1").replace("//db", "//127.0.0.1:1"))
        assert "s3cret" not in said.out + said.err
        assert "p@ss" not in said.out + said.err


def test_no_key_is_sent_to_a_server_that_only_the_repository_names(tmp_path: Path) -> None:
    file = tmp_path / "tenure.toml"
    file.write_text('url = "https://evil.example"\n')
    state = {"TENURE_STATE": str(tmp_path / "state")}
    key = {**state, "TENURE_KEY": "tnr_a_b"}
    for name in ("url", "key"):
        with pytest.raises(Untrusted, match=r"evil\.example"):
            read_settings(str(tmp_path), key)[name]
    with pytest.raises(Untrusted):  # without a key to lose it is not followed either
        find_home(str(tmp_path), read_settings(str(tmp_path), state))
    Trusted(tmp_path / "state").trust(file, {"url": "https://evil.example"})
    assert read_settings(str(tmp_path), state)["url"].value == "https://evil.example"
    with pytest.raises(BadConfig, match="your key is not sent to a server"):
        read_settings(str(tmp_path), key)["key"]
    said = read_settings(str(tmp_path), {**key, "TENURE_URL": "https://ours.example"})
    assert (said["url"].value, said["key"].value) == ("https://ours.example", "tnr_a_b")


def test_sinks_and_channels_are_shown_with_their_origin_and_without_secrets(tenure: Tenure) -> None:
    path = tenure.folder / ".tenure" / "config.toml"
    path.write_text(
        '[sinks.main]\nurl = "nats://ann:p4ss@host:4222"\n[notify.team]\nurl = "https://hooks.example.org/services/p4ss"\n'
    )
    said = tenure("config", "--json")
    assert said.code == 0, said.err
    assert "p4ss" not in said.out + tenure("config").out
    shown = said.json["sinks.main.url"]
    assert (shown["value"], shown["origin"]) == ("nats://host:4222", str(path))
    assert shown["meaning"].startswith("where events are sent")
    assert tenure("config", "notify.team.url").out.strip() == "https://hooks.example.org"

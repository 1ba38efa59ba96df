"""`artifact put`, `get`, `list`: files kept with a task, and written where one asked for and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Tenure


@pytest.fixture
def held(tenure: Tenure, add: Callable[..., str]) -> Tenure:
    add("Write the report")
    add("Print the report", "--after", "A-001")
    assert tenure("claim", "A-001").code == 0
    (tenure.folder / "report.md").write_text("# Report\n")
    return tenure


def test_a_file_is_kept_listed_handed_on_and_written_again(held: Tenure) -> None:
    kept = held("artifact", "put", "A-001", "report.md", "--name", "docs/report.md", "--json")
    assert (kept.code, kept.json["artifact"]["type"]) == (0, "text/markdown")
    assert "docs/report.md" in held("artifact", "list", "A-001").out
    (entry,) = held("artifact", "list", "--json").json
    assert entry == kept.json["artifact"]
    assert "docs/report.md" in held("show", "A-001").out
    assert held("done", "A-001").code == 0

    (handed,) = held("claim", "A-002", "--json").json["inputs"].values()
    ref = handed["artifacts"][0]["ref"]
    (held.folder / "out").mkdir()
    got = held("artifact", "get", ref, "--into", "out", "--json")
    assert got.json["path"] == "out/docs/report.md"
    assert (held.folder / "out/docs/report.md").read_text() == "# Report\n"


def test_with_one_task_held_it_need_not_be_named(held: Tenure) -> None:
    assert held("artifact", "put", "report.md").out == (
        "kept report.md, 9 bytes, as artifact:A-001-write-the-report/report.md\n"
    )


def test_what_comes_from_stdin_needs_a_name(held: Tenure) -> None:
    assert held.process("artifact", "put", "-", stdin="x").code == 2
    held("release", "A-001")
    receipt = held("claim", "A-001", "--json").json["receipt"]
    said = held.process("artifact", "put", "A-001", "-", "--name", "a.txt", "--receipt", receipt, stdin="from a pipe")
    assert said.code == 0
    assert held.process("artifact", "get", "A-001", "a.txt", "--stdout").out == "from a pipe"


def test_bytes_are_printed_as_they_are(held: Tenure) -> None:
    held("artifact", "put", "report.md")
    assert held.process("artifact", "get", "A-001", "report.md", "--stdout").out == "# Report\n"
    assert held("artifact", "get", "A-001", "report.md", "--stdout", "--json").code == 2


def test_nothing_is_written_over_unless_told(held: Tenure) -> None:
    held("artifact", "put", "report.md")
    (held.folder / "report.md").write_text("mine\n")
    refused = held("artifact", "get", "A-001", "report.md")
    assert (refused.code, "--force" in refused.err) == (8, True)
    assert (held.folder / "report.md").read_text() == "mine\n"
    assert held("artifact", "get", "A-001", "report.md", "--as", "theirs.md").code == 0
    assert held("artifact", "get", "A-001", "report.md", "--force").code == 0
    assert (held.folder / "report.md").read_text() == "# Report\n"


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", ".git/hooks/x", "a\\b"])
def test_names_that_lead_elsewhere_are_refused(held: Tenure, name: str) -> None:
    assert held("artifact", "put", "report.md", "--name", name).code == 8
    held("artifact", "put", "report.md")
    assert held("artifact", "get", "A-001", "report.md", "--as", name).code == 8
    assert held("artifact", "get", "A-001", name).code == 8


def test_a_link_on_the_way_is_not_followed(held: Tenure, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    held("artifact", "put", "report.md", "--name", "docs/report.md")
    (held.folder / "docs").symlink_to(outside)
    refused = held("artifact", "get", "A-001", "docs/report.md")
    assert (refused.code, list(outside.iterdir())) == (7, [])


def test_a_stale_receipt_is_refused_and_nothing_is_listed(held: Tenure) -> None:
    receipt = held("claim", "A-001", "--json").json  # yours already: no receipt
    assert "receipt" not in receipt
    held("release", "A-001")
    refused = held("artifact", "put", "A-001", "report.md")
    assert refused.code == 6
    assert held("artifact", "list", "A-001").out == "no artifacts\n"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["put", "none.txt"], 8, "No such file"),
        (["put", "."], 8, "directory"),
        (["put", "report.md", "--type", "nonsense"], 8, "not a media type"),
        (["get", "A-001", "none"], 4, "no artifact 'none'"),
        (["get", "A-001"], 2, "which artifact"),
        (["list", "A-099"], 4, "no task"),
    ],
)
def test_mistakes_are_told(held: Tenure, words: list[str], code: int, told: str) -> None:
    said = held("artifact", *words)
    assert said.code == code
    assert told in said.err


def test_a_result_says_what_goes_along(held: Tenure) -> None:
    held("artifact", "put", "report.md")
    held("artifact", "put", "report.md", "--name", "draft.md")
    assert held("done", "A-001", "--artifact", "none.md").code == 8
    assert held("done", "A-001", "--artifact", "report.md").code == 0
    (handed,) = held("claim", "A-002", "--json").json["inputs"].values()
    assert [entry["name"] for entry in handed["artifacts"]] == ["report.md"]


def test_the_place_is_a_setting_that_no_shared_file_may_give(held: Tenure, tmp_path: Path) -> None:
    local = held.folder / ".tenure/config.toml"
    local.write_text('artifacts = "kept"\n')
    local.chmod(0o600)
    held("artifact", "put", "report.md")
    assert any(path.is_file() for path in (held.folder / "kept").rglob("*"))
    (held.folder / "tenure.toml").write_text('artifacts = "s3://elsewhere"\n')
    refused = held("artifact", "put", "report.md")
    assert (refused.code, "shared file" in refused.err) == (11, True)


def test_doctor_tells_of_bytes_that_are_gone(held: Tenure) -> None:
    held("artifact", "put", "report.md")
    assert held("db", "check").code == 0
    for path in (held.folder / ".tenure/tenure.artifacts").rglob("*"):
        if path.is_file():
            path.unlink()
    told = held("db", "check")
    assert (told.code, "artifact content" in told.out + told.err) == (10, True)

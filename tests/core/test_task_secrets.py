"""Secrets of tasks: names that mark them, their paths, how they are compared, and how they are found in texts."""

import html
import json
import re
from base64 import b32encode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.commands.command import digest_of
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.escaped_texts import unescaped
from tenure.core.inputs import validated
from tenure.core.sealed import SEALED
from tenure.core.task_secrets import (
    MOST,
    SEARCHED,
    SHOWN,
    VARIABLE,
    Hidden,
    check_names,
    comparable,
    is_secret_name,
    masked,
    same,
    same_secrets,
    sealed_in,
    shown_name,
    value_at,
    variable_of,
)


@pytest.mark.parametrize(
    "name",
    ["password", "db_password", "DB_PASSWORD", "dbPassword", "db-password", "my.secret", "apiKey", "api_key", "API-KEY",
     "stripe api key", "accessToken", "AUTH_TOKEN", "sshPrivateKey", "private__key"],
)  # fmt: skip
def test_a_name_that_ends_in_a_whole_word_is_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["password_hint", "passwords", "mypassword", "secretary", "token", "key", "public_key", "apikeys", "primary_key",
     "tokens_per_line", "secret_name", ""],
)  # fmt: skip
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


def sealed(digest: str, text: str = "t") -> dict[str, Any]:
    return {SEALED: {"key": "k", "nonce": "n", "text": text, "digest": digest}}


def test_paths_are_json_pointers_and_names_are_for_people() -> None:
    value = {"context": {"a/b": {"c~d": sealed("1")}, "list": [0, sealed("2")]}}
    paths = [path for path, _ in sealed_in(value, "/spec")]
    assert paths == ["/spec/context/a~1b/c~0d", "/spec/context/list/1"]
    assert [shown_name(path) for path in paths] == ["a/b.c~d", "list.1"]
    assert [value_at({"spec": value}, path) for path in paths] == [sealed("1"), sealed("2")]
    assert shown_name("/metadata/token") == "metadata.token"
    assert value_at(value, "/context/list/7") is None


def test_a_variable_begins_with_the_prefix_whatever_the_name_is() -> None:
    """A task must not set PATH or LD_PRELOAD of the process that runs it."""
    assert {variable_of(name) for name in ("PATH", "ld.preload")} == {f"{VARIABLE}PATH", f"{VARIABLE}LD_PRELOAD"}


def test_two_secrets_with_one_variable_are_refused_and_so_are_too_many() -> None:
    check_names(["/metadata/a", "/metadata/b"])
    with pytest.raises(InvalidInput):
        check_names(["/metadata/a-b", "/metadata/a_b"])
    with pytest.raises(TooLarge):
        check_names(f"/metadata/{number}" for number in range(MOST + 1))


def test_values_are_masked_and_compared_by_digest() -> None:
    value = {"a": sealed("1"), "b": [sealed("2"), "plain"]}
    assert masked(value) == {"a": SHOWN, "b": [SHOWN, "plain"]}
    assert comparable(value) == comparable({"a": sealed("1", "other"), "b": [sealed("2", "other"), "plain"]})
    assert comparable(value) != comparable({"a": sealed("3"), "b": [sealed("2"), "plain"]})
    plain = {"a": 1}
    assert masked(plain) is plain


def test_input_may_give_a_secret_as_it_is_shown() -> None:
    known = {"a": sealed("1"), "b": 2}
    assert same({"a": SHOWN, "b": 2}, known)
    assert same({"a": sealed("1", "other"), "b": 2}, known)
    assert not same({"a": SHOWN, "b": 3}, known)
    assert not same({"a": "text", "b": 2}, known)
    assert same_secrets({"a": SHOWN, "b": 3}, known)
    assert not same_secrets({"b": 2}, known)
    assert not same_secrets({"a": sealed("1"), "c": sealed("1")}, known)


def test_a_digest_of_a_request_names_the_secret_and_not_how_it_is_sealed() -> None:
    def digest(value: Any) -> str:
        return digest_of(c.Add(project="p", task=NewTask(title="x", metadata={"a": value})))

    assert digest(sealed("1")) == digest(sealed("1", "other"))
    assert digest(sealed("1")) != digest(sealed("2"))


@pytest.mark.parametrize("data", [{"a": [sealed("1")]}, {SEALED: 1}, [[{SEALED: {}}]]])
def test_no_input_of_any_command_may_be_sealed(data: Any) -> None:
    with pytest.raises(InvalidInput):
        validated(c.Submit(project="p", receipt="r", data=data))
    validated(c.Submit(project="p", receipt="r", data="a text about $sealed"))


# --- in texts -----------------------------------------------------------------------------------------------

secrets = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=SEARCHED, max_size=40).filter(
    str.strip
)
around = st.text(st.characters(codec="utf-8"), max_size=7)


@given(secrets, around, around)
def test_a_secret_is_found_in_every_spelling(secret: str, before: str, after: str) -> None:
    hidden = Hidden([secret])
    whole = f"{before}{secret}{after}"
    for text in (whole, quote(whole, safe=""), quote_plus(whole), quote(secret).lower() if secret.isascii() else whole):
        found = hidden.text(text)
        assert found != text or secret not in text
    plain = hidden.text(whole)
    assert secret not in plain.replace(SHOWN, "\0") or secret in SHOWN


@given(st.binary(max_size=9), st.binary(max_size=9))
def test_a_secret_is_found_inside_of_base64_wherever_it_begins(before: bytes, after: bytes) -> None:
    secret = "correct horse battery"
    hidden = Hidden([secret])
    for encode in (b64encode, urlsafe_b64encode):
        text = encode(before + secret.encode() + after).decode()
        assert SHOWN in hidden.text(text)


ODD = "pä$s \"w\\o&rd'<1>/%41"  # with everything that some escape changes


def every_byte(text: str, form: str) -> str:
    return "".join(form.format(byte) for byte in text.encode())


# One in each row of the table in docs/how-to/keep-secrets.md.
ENCODINGS: dict[str, tuple[bool, Callable[[str], str]]] = {
    "plain": (True, str),
    "base64": (True, lambda text: b64encode(text.encode()).decode()),
    "base64 inside of a longer text": (True, lambda text: b64encode(f"u:{text}:x".encode()).decode()),
    "base64 for URLs": (True, lambda text: urlsafe_b64encode(text.encode()).decode()),
    "base64 in JSON": (True, lambda text: json.dumps(b64encode(text.encode()).decode()).replace("/", "\\/")),
    "URL": (True, quote),
    "URL as in a form": (True, quote_plus),
    "URL, every byte": (True, lambda text: every_byte(text, "%{:02x}")),
    "URL twice": (True, lambda text: quote(quote(text, safe=""), safe="")),
    "JSON": (True, lambda text: json.dumps(text, ensure_ascii=False)),
    "JSON in JSON in JSON": (True, lambda text: json.dumps(json.dumps(json.dumps(text)))),
    "\\u of each character": (True, lambda text: "".join(f"\\u{ord(letter):04X}" for letter in text)),
    "HTML": (True, html.escape),
    "HTML, numbers": (True, lambda text: "".join(f"&#{ord(letter)};" for letter in text)),
    "backslashes of a shell": (True, lambda text: re.sub(r"(\W)", r"\\\1", text)),
    "\\x of each byte": (True, lambda text: every_byte(text, "\\x{:02x}")),
    "octal of each byte": (True, lambda text: every_byte(text, "\\{:03o}")),
    "HTML of JSON in a URL": (True, lambda text: quote(html.escape(json.dumps(text)))),
    "hex": (False, lambda text: text.encode().hex()),
    "base32": (False, lambda text: b32encode(text.encode()).decode()),
    "base64 of base64": (False, lambda text: b64encode(b64encode(text.encode())).decode()),
    "upper case": (False, str.upper),
    "reversed": (False, lambda text: text[::-1]),
    "an invisible character inside": (False, lambda text: f"{text[:4]}\u200b{text[4:]}"),
}


@pytest.mark.parametrize("secret", ["correct horse battery", ODD])
@pytest.mark.parametrize("name", ENCODINGS)
def test_of_24_encodings_18_are_found_and_the_others_are_said_not_to_be(name: str, secret: str) -> None:
    assert (len(ENCODINGS), sum(found for found, _ in ENCODINGS.values())) == (24, 18)
    is_found, encoded = ENCODINGS[name]
    text = f"it is {encoded(secret)} there"
    after = Hidden([secret]).text(text)
    assert (SHOWN in after) is is_found
    if is_found:
        assert after.startswith("it is ")
        assert after.endswith(" there")
        assert len(after) < len("it is  there") + len(SHOWN) + 25  # what was around it, as quotes


def test_the_text_around_an_escaped_secret_stays_as_it_is() -> None:
    text = r'{"a": "C:\new\table 100%25", "b": "say \"correct\u0020horse battery\" & go"}'
    after = Hidden(["correct horse battery"]).text(text)
    assert after == text.replace(r"correct\u0020horse battery", SHOWN)
    other = r'{"a": "C:\new\table", "b": "&amp; %41"}'
    assert Hidden(["correct horse battery"]).text(other) == other


@given(secrets, around, around)
def test_a_secret_is_found_in_json_of_json_and_in_html(secret: str, before: str, after: str) -> None:
    hidden, whole = Hidden([secret]), f"{before}{secret}{after}"
    for text in (json.dumps(json.dumps(whole)), html.escape(json.dumps(whole))):
        assert SHOWN in hidden.text(text) or len(unescaped(secret)) < SEARCHED


@pytest.mark.parametrize("part", ["\\", "\\u004", "&amp;", "%25", "%2", "&#3", "\\x4", "&amp"])
def test_a_long_run_of_escapes_is_read_in_time_that_grows_with_its_length(part: str) -> None:
    """A pattern that tried each end anew would not come back."""
    hidden = Hidden(["correct horse battery"])
    assert hidden.text(part * 100_000) == part * 100_000


def test_the_lines_of_a_long_secret_are_found_one_by_one() -> None:
    """Transcripts are searched line by line."""
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\nggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"
    hidden = Hidden([key])
    assert hidden.text("  MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw") == f"  {SHOWN}"
    assert hidden.text("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"


def test_names_and_numbers_are_searched_and_the_numbers_of_a_command_stay() -> None:
    hidden = Hidden(["12345678", "abcdefgh"])
    assert hidden.value({"abcdefgh": [12345678, 5, True, None]}) == {SHOWN: [SHOWN, 5, True, None]}
    command = c.Progress(project="p", receipt="abcdefgh", step="is abcdefgh", percent=12)
    assert hidden.struct(command, ("receipt",)) == c.Progress(
        project="p", receipt="abcdefgh", step=f"is {SHOWN}", percent=12
    )


def test_the_longer_of_two_secrets_is_found_first_and_a_short_one_not_at_all() -> None:
    assert Hidden(["secret-one", "secret-one-and-two"]).text("x secret-one-and-two y") == f"x {SHOWN} y"
    assert not Hidden(["abc"])
    assert Hidden(["abc"]).text("abc") == "abc"

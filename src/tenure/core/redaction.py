"""Texts without secrets: receipts, keys, tokens and passwords are recognised by their form, or by their name.

The one search for errors, stack traces, log lines and transcripts. It knows the forms below and no other: a secret that
has none of them, and no name beside it, stays. Pure, and linear in the length of the text: no pattern reads a
part twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tenure.core import limits
from tenure.core.secret_names import PRINTED, WORDS, names_credential

GONE = "…"
TRACE = "$trace"  # in a claim's metadata: the stack trace of its failure

_NAMES = "|".join(word.replace("_", "[_-]?") for word in (*WORDS, *PRINTED))
_NAMED = tuple(dict.fromkeys(word.rpartition("_")[2] for word in (*WORDS, *PRINTED)))  # one is in each name
_START = r"(?<![A-Za-z0-9])"
_TASK_KEY = r"(?![A-Z]{1,32}-[0-9]{3,18}\b)"
_VALUE = r"(\\{0,3}[\"']))(?:(?!\2)(?:\\[^\n]|[^\n]))++"  # its quote, which closes the first group, and what it holds


# Hints, of which each match has one (in small letters), the pattern, and what stands there instead.
_PATTERNS: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = (
    (("private key",), re.compile(r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----)"
        r"(?:[^-]|-(?!----))*+(-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----)?"), rf"\1{GONE}\2"),
    # The tenant and the id of a key are public.
    (("tnr_",), re.compile(r"\b(tnr_(?:[0-9a-z-]{1,40}_)?[0-9a-z]{4,})_[0-9a-z]{8,}", re.IGNORECASE), rf"\1_{GONE}"),
    # A receipt.
    (("@", "%40"), re.compile(r"((?:@|%40)[0-9]{1,18}(?::|%3A))[0-9A-Za-z]{6,}", re.IGNORECASE), rf"\1{GONE}"),
    # A JSON web token.
    (("eyj",), re.compile(r"(?<![\w-])eyJ[\w-]{5,}+\.[\w-]++(?:\.[\w-]*+)*+"), f"eyJ{GONE}"),
    # The keys of providers: models, code hosts, clouds, chats, payments.
    (("sk-",), re.compile(rf"{_START}(sk-(?:ant|proj|svcacct|admin|or|lf)-)[\w-]{{6,}}+"), rf"\1{GONE}"),
    (("sk-",), re.compile(rf"{_START}sk-[A-Za-z0-9]{{16,}}+"), f"sk-{GONE}"),
    (("k_live_", "k_test_"), re.compile(rf"{_START}([srp]k_(?:live|test)_)[A-Za-z0-9]{{8,}}+"), rf"\1{GONE}"),
    (("gh",), re.compile(rf"{_START}(gh[opusr]_)[A-Za-z0-9]{{16,}}+"), rf"\1{GONE}"),
    (("github_pat_", "glpat-", "hf_", "gsk_", "npm_", "whsec_"),
        re.compile(rf"{_START}(github_pat_|glpat-|hf_|gsk_|npm_|whsec_)[\w-]{{16,}}+"), rf"\1{GONE}"),
    (("akia", "asia"), re.compile(rf"{_START}(AKIA|ASIA)[A-Z0-9]{{12,}}+"), rf"\1{GONE}"),
    (("xox", "xapp-"), re.compile(rf"{_START}(xox[a-z]-|xapp-)[A-Za-z0-9-]{{8,}}+"), rf"\1{GONE}"),
    (("aiza",), re.compile(rf"{_START}AIza[\w-]{{20,}}+"), f"AIza{GONE}"),
    (("bearer",), re.compile(r"\b(bearer)(\s{1,8}|%20)[^\s,;\"'\\]+", re.IGNORECASE), rf"\1\2{GONE}"),
    # Letters alone may be any word: base64 of a password has a digit, a sign or a capital inside.
    (("basic",), re.compile(
        r"\b((?i:basic))(\s{1,8}|%20)(?=[A-Za-z]{0,200}(?:[0-9=+/]|[a-z][A-Z]))[A-Za-z0-9+/=_-]{6,}+"), rf"\1\2{GONE}"),
    (("://",), re.compile(r"(://[^/@:\s]*+:)[^@/\s]++@"), rf"\1{GONE}@"),  # a password in an address
    (("cookie",), re.compile(r"(\bcookie[ \t]{0,4}:[ \t]{0,4})[^\s=\"']{1,100}=[^\r\n\"']+", re.IGNORECASE),
        rf"\1{GONE}"),
    # A quoted value of a name, as in Python, JSON, JSON in JSON and YAML; to the end of its line at most.
    (_NAMED, re.compile(rf"((?:{_NAMES})\\{{0,3}}[\"']?[ \t]{{0,8}}(?:=(?!=)>?|:=?)[ \t]{{0,8}}[bru]{{0,2}}{_VALUE}",
        re.IGNORECASE), rf"\1{GONE}"),
    # A pair of name and value, as many clients print headers.
    (_NAMED, re.compile(rf"(\([bru]{{0,2}}[\"'][\w-]{{0,60}}(?:{_NAMES})[\"'],[ \t]{{0,8}}[bru]{{0,2}}{_VALUE}",
        re.IGNORECASE), rf"\1{GONE}"),
    (_NAMED, re.compile(rf"((?:{_NAMES})(?:[ \t]{{0,8}}=(?!=)[ \t]{{0,8}}|%3D))[^&\s\"']+", re.IGNORECASE),
        rf"\1{GONE}"),
    (("key=",), re.compile(rf"(?<!\w)((?i:key)=){_TASK_KEY}[^&\s\"']+"), rf"\1{GONE}"),
    (("authorization",), re.compile(
        r"(authorization[ \t]{0,4}:[ \t]{0,4}(?:[A-Za-z-]{1,30}[ \t]{1,4})?)[^\s,;\"']{8,}+", re.IGNORECASE),
        rf"\1{GONE}"),
    # After a colon or a space stands prose too: there a value has a digit, unless the name begins the line.
    (_NAMED, re.compile(rf"((?:{_NAMES}):[ \t]{{0,8}})(?=[^\s\"',;]{{0,200}}[0-9])[^\s\"',;&]{{4,}}+", re.IGNORECASE),
        rf"\1{GONE}"),
    (_NAMED, re.compile(rf"(^[ \t]{{0,40}}[\w.-]{{0,60}}(?:{_NAMES})[ \t]{{0,8}}:[ \t]{{1,8}})"
        rf"(?!\w{{1,30}}[ \t]{{1,8}}{GONE})[^\s\"']{{4,}}+", re.IGNORECASE | re.MULTILINE), rf"\1{GONE}"),
    (_NAMED, re.compile(rf"((?<!-)--[\w-]{{0,60}}(?:{_NAMES})[ \t]{{1,8}})(?=\S{{0,200}}[0-9])[^\s\"'-][^\s\"']{{3,}}+",
        re.IGNORECASE), rf"\1{GONE}"),
)  # fmt: skip
_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")


def without_secrets(text: str) -> str:
    """The text without anything that looks like a secret."""
    small = text.lower()
    for hints, pattern, replacement in _PATTERNS:
        for hint in hints:
            if hint in small:
                text = pattern.sub(replacement, text)
                break
    return text


def value_without_secrets(value: Any) -> Any:
    """The same of the texts of a JSON value; of a text whose name says what it is, nothing stays."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {
            without_secrets(name): GONE
            if isinstance(inner, str) and inner and names_credential(name)
            else value_without_secrets(inner)
            for name, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(map(value_without_secrets, value))
    return value


class Redacted:
    """The lines of one stream without secrets: JSON stays JSON, and a private key may take many lines."""

    def __init__(self) -> None:
        self._left = 0  # lines of a private key that may follow

    def line(self, text: str) -> str:
        if self._left > 0:
            end = _ENDS.search(text)
            self._left = 0 if end else self._left - 1
            return GONE if end is None else GONE + without_secrets(text[end.start() :])
        if text.lstrip()[:1] in ("{", "["):
            try:
                value = msgspec.json.decode(text)
                after = value_without_secrets(value)
                return text if after == value else msgspec.json.encode(after).decode()
            except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
                pass
        for begin in _BEGINS.finditer(text):
            if _ENDS.search(text, begin.end()) is None:
                self._left = limits.PRIVATE_KEY_LINES
                break
        return without_secrets(text)


def kept_trace(trace: str) -> str:
    """A stack trace as it is kept: of a long one its beginning and, above all, its end."""
    if len(trace) <= limits.TRACE:
        return trace
    begin = limits.TRACE // 4
    return f"{trace[:begin]}\n  {GONE}\n{trace[-(limits.TRACE - begin - 5) :]}"

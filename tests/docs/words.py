"""Finds words that the house does not use, in what people read: docs, help, messages, docstrings, comments, pages.

`python -m tests.docs.words` lists what is left; `--lower` writes the counts to `words_left.json`, which the test
compares. A count there may only fall: text that moves to another folder takes its count along, new text brings none.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LEFT = Path(__file__).with_name("words_left.json")
GENERATED = "<!-- Made from the code by"  # such a page repeats texts that are counted where they are written


class Word(NamedTuple):
    """What must not be written, and the words for it. `only`, `but`: the one folder to search, or to leave out."""

    pattern: str
    better: str
    only: str = ""
    but: str = ""


_BE = "is|are|was|were|be|been"
WORDS: dict[str, Word] = {
    "journey": Word(r"journeys?", "round trip"),
    "link": Word(r"(?:the|this|its|each|one|another) links?", "connection", only="src/tenure/stores"),
    "nought": Word(r"noughts?", "zero"),
    "anew": Word(r"anew", "again"),
    "mend": Word(r"mend(?:s|ed|ing)?", "fix"),
    "away": Word(rf"(?:{_BE}|goes|go|went|gone|stays?|stayed) away(?! (?:from|by|with)\b)", "unavailable"),
    "be had": Word(r"(?:can|cannot|could|to) be had", "available, unavailable"),
    "hand in": Word(r"(?<!by )hand(?:s|ed|ing)? (?:\w+ ){0,2}in(?! (?:hand|which)\b)", "submit, pass"),
    "hold out": Word(r"(?:held|holds?|holding) (?:(?:a|the|it|this|task|them|back) ){0,2}out", "offer"),
    "tell": Word(r"(?:tells?|told|telling)", "report, return, show"),
    "say of": Word(r"(?:says?|said|saying) of", "report, describe"),
    "is no": Word(
        rf"(?<!there\s)(?<!which\s)(?:{_BE}) no(?! (?:longer|more|less|one|way|later|earlier)\b)(?=\s\w)",
        "is not a valid …",
    ),
    "circle": Word(r"(?<!<)circles?", "cycle, acyclic", but="src/tenure/server/dashboard"),
    "send home": Word(r"sen[dt](?:s|ing)? (?:\w+ ){0,2}home", "stop with SIGTERM"),
    "neighbours": Word(r"kn[eo]ws? (?:its|their) neighbours", "order-dependent"),
    "bold": Word(r"bold(?:ly)?", "optimistic", but="src/tenure/cli"),
    "short way": Word(r"(?:short|long)(?:er)? ways?(?! (?:off|from)\b)", "fast path, slow path"),
    "whoever": Word(r"whoever", "name the actor"),
    "what is": Word(rf"what (?:{_BE})(?! (?:it|this|that|new)\?)(?![^.:;]{{0,60}}\?)", "name the thing"),
    "of its own": Word(r"of (?:its|their|his|my|our|your|one's) own", "its own …, separate"),
    "all that": Word(r"all that", "all, everything"),
    "end of a wire": Word(r"end of a wire", "over the network"),
}
_FOUND = {name: re.compile(rf"\b(?:{word.pattern})(?!\w)", re.IGNORECASE) for name, word in WORDS.items()}
_CODE = re.compile(r"`[^`\n]*`")
# Output of ours in a page is counted where it is written.
_QUOTED = re.compile(r"^```(?:console|text)\n.*?^```$", re.DOTALL | re.MULTILINE)
_FROZEN = ("migrations", "vendor", "__pycache__", "testing")


class Use(NamedTuple):
    folder: str
    word: str
    where: str
    text: str


def uses(root: Path = ROOT) -> list[Use]:
    found = []
    for path in sorted(files(root)):
        folder = folder_of(path.relative_to(root))
        for line, text in texts(path):
            plain = _CODE.sub("`…`", text)
            for name, word in WORDS.items():
                if not folder.startswith(word.only) or (word.but and folder.startswith(word.but)):
                    continue
                for match in _FOUND[name].finditer(plain):
                    row = line + plain.count("\n", 0, match.start())
                    around = " ".join(plain[max(0, match.start() - 30) : match.end() + 30].split())
                    found.append(Use(folder, name, f"{path.relative_to(root)}:{row}", around))
    return found


def counts(root: Path = ROOT) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for use in uses(root):
        found.setdefault(use.folder, Counter())[use.word] += 1
    return {folder: dict(sorted(found[folder].items())) for folder in sorted(found)}


def files(root: Path) -> Iterator[Path]:
    yield from root.glob("*.md")
    for pattern in ("docs/**/*.md", "tests/docs/*.md", "bench/**/*.md", "bench/**/*.py", "src/tenure/**/*"):
        for path in root.glob(pattern):
            if path.suffix in (".md", ".py", ".js", ".html", ".css") and not set(path.parts) & set(_FROZEN):
                yield path


def folder_of(path: Path) -> str:
    """The package or the folder of documents that a file belongs to: a move within one changes nothing."""
    folders = path.parts[:-1]
    if folders[:4] == ("src", "tenure", "server", "dashboard"):
        return "/".join(folders[:4])
    if folders[:1] == ("src",):
        return "/".join(folders[:3])
    return "/".join(folders if folders[:1] == ("tests",) else folders[:1]) or "."


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """What people read in a file, each with the line it begins in."""
    content = path.read_text()
    if path.suffix == ".py":
        yield from prose_in(content)
    elif not content.startswith(GENERATED):
        yield 1, _QUOTED.sub(lambda block: "\n" * block.group().count("\n"), content)


def prose_in(source: str) -> Iterator[tuple[int, str]]:
    """Comments, and strings with a space in them: what has none is an identifier or a code."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        if " " in text:
            yield node.lineno, text


def left() -> dict[str, dict[str, int]]:
    loaded: dict[str, dict[str, int]] = json.loads(LEFT.read_text())
    return loaded


def lower() -> str:
    """Write the counts; an error text where there is more of a word in all than before."""
    now, before = counts(), left() if LEFT.exists() else None
    if before is not None:
        for word, entry in WORDS.items():
            total = sum(folder.get(word, 0) for folder in now.values())
            if total > (most := sum(folder.get(word, 0) for folder in before.values())):
                return f"{word}: {total} uses, {most} before; write {entry.better} instead"
    LEFT.write_text(json.dumps(now, indent=1) + "\n")
    return ""


def main(argv: list[str]) -> int:
    if "--lower" in argv:
        error = lower()
        print(error, end="\n" if error else "", file=sys.stderr)
        return 1 if error else 0
    wanted = [argument for argument in argv if not argument.startswith("-")]
    for use in uses():
        if not wanted or use.folder in wanted or use.word in wanted:
            print(f"{use.where}: {use.word}: {use.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

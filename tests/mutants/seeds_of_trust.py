"""Seeded bugs in whose word counts, and in how text of others is shown: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

UNTRUSTED = ("tests/cli/test_untrusted.py",)
PRINTING = ("tests/cli/test_printing.py",)
PRIVATE = ("tests/cli/test_private.py",)

TRUST = (
    Mutant(
        "trust: a cloned file's url is followed",
        "config.py",
        "self.sources[origin].check(self.environ)",
        "pass",
        UNTRUSTED,
    ),
    Mutant(
        "trust: a key of the environment goes where the tree says",
        "config.py",
        'if str(url.value).startswith(("http://", "https://")):',
        "if False:",
        UNTRUSTED,
    ),
    Mutant("trust: links are followed", "config.py", "                refuse_links(found)\n", "", UNTRUSTED),
    Mutant(
        "trust: init writes through a link",
        "agents/founding.py",
        "    refuse_links(folder)\n",
        "",
        UNTRUSTED,
    ),
    Mutant(
        "trust: git's index is not looked at",
        "trust/ownership.py",
        "if is_tracked(path) else None",
        "if False else None",
        UNTRUSTED,
    ),
    Mutant(
        "trust: a changed file keeps its answer",
        "trust/ownership.py",
        "if known.get(path) == mark:",
        "if path in known:",
        UNTRUSTED,
    ),
    Mutant(
        "trust: a cloned store is served",
        "config.py",
        "    if why is not None:\n        from tenure.trust.allowing import Trusted\n",
        "    if False:\n        from tenure.trust.allowing import Trusted\n",
        UNTRUSTED,
    ),
    Mutant(
        "trust: a quoted key passes for a path of tables",
        "config.py",
        """(f'"{key}"' if "." in key else key)""",
        "key",
        UNTRUSTED,
    ),
    Mutant(
        "printing: control characters are printed raw",
        "core/neutral.py",
        'return _CONTROLS.sub(_escaped, text.replace("\\r\\n", "\\n"))',
        "return text",
        PRINTING,
    ),
    Mutant(
        "printing: a description's lines pass for ours",
        "agents/quoting.py",
        "(MARK + line).rstrip()",
        "line",
        PRINTING,
    ),
    Mutant(
        "printing: the author is not named",
        "agents/quoting.py",
        'return f"written by {author}{edited}"',
        'return "written by somebody"',
        PRINTING,
    ),
    Mutant(
        "files: transcripts are open to others",
        "agents/running/transcripts.py",
        "make_private_folder(self.folder)",
        "os.makedirs(self.folder, mode=0o700, exist_ok=True)",
        PRIVATE,
    ),
)

"""What the shell blocks of each page take for granted, what stands for other machines, and the lines that cannot run.

`before` is run in the empty folder before the page's first block; `between` before the line that begins so, the first
time that it comes. `replaced` has texts of the page and what the test uses instead; its values may use `{folder}`,
`{postgres}`, `{other}` (a second store there), `{port}` and `{server}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

NONE: Mapping[str, str] = MappingProxyType({})

POSTGRES = {"postgresql://tenure@db.example.com/work": "{postgres}"}
INDEX = "fetches packages from an index; tests/agents/test_first_hour.py installs the wheel"
NOW = "$(date -u +%FT%T.%6NZ)"
HEAD = "$(cat head)"
PLAN = """\
cat > release.yaml <<END
name: release
tasks: [Write the parser, Write the tests]
END
"""
THREE = "for n in 1 2 3; do tenure add Task --track B; done\n"
HELD = "tenure claim B-003 --agent claude-1 --session s-1\n"


class Stage(NamedTuple):
    before: str = "tenure init --project shop\n"
    needs: tuple[str, ...] = ()
    between: Mapping[str, str] = NONE
    replaced: Mapping[str, str] = NONE
    left_out: Mapping[str, str] = NONE  # how a line begins, and why it is not run


# Pages whose shell blocks a test of their own runs.
ELSEWHERE = {
    "how-to/run-agents.md": "tests/agents/test_run_page.py",
    "how-to/use-cheaper-models-first.md": "tests/docs/test_models_page.py",
}

# Pages with terminal sessions (`$ command`, and what it prints), and the test that runs every one of their blocks.
SESSIONS = {
    "README.md": "tests/docs/test_docs.py",
    "how-to/assign-work.md": "tests/docs/test_assign_page.py",
    "how-to/drive-workers-from-a-broker.md": "tests/docs/test_messaging_pages.py",
    "how-to/keep-artifacts.md": "tests/docs/test_artifacts_page.py",
    "how-to/keep-secrets.md": "tests/docs/test_messaging_pages.py",
    "how-to/notify-people.md": "tests/docs/test_messaging_pages.py",
    "how-to/run-a-pool.md": "tests/docs/test_pool_page.py",
    "how-to/schedule-work.md": "tests/cli/test_sources.py",
    "how-to/send-events.md": "tests/docs/test_messaging_pages.py",
    "how-to/send-to-a-webhook.md": "tests/docs/test_messaging_pages.py",
    "how-to/set-a-budget.md": "tests/docs/test_budget_page.py",
    "how-to/use-cheaper-models-first.md": "tests/docs/test_models_page.py",
    "how-to/validate-output.md": "tests/validators/test_how_to.py",
    "how-to/work-in-worktrees.md": "tests/worktrees/test_how_to.py",
}

STAGES = {
    "README.md": Stage(
        before="", left_out={"./x demo": "is of a checkout; tests/fresh runs it", "uv tool install": INDEX}
    ),
    "how-to/back-up.md": Stage(
        before="tenure init --project shop\ntenure add One\n", needs=("postgres",), replaced=POSTGRES
    ),
    "how-to/forecast.md": Stage(
        before="tenure init --project shop\ntenure pool set coders --agent true --size 2\n"
        + PLAN
        + "tenure plan apply release.yaml\nsed s/release/later/ release.yaml > plan.yaml\n"
    ),
    "how-to/import-from-other-tools.md": Stage(
        before="tenure init --project shop\ncp -r {root}/tests/plans/fixtures/{beads,task-master,backlog}/. .\n"
    ),
    "how-to/isolate-a-tenant.md": Stage(
        before="export TENURE_URL={postgres} BIGCORP_URL={other}\ntenure init --project shop\n"
        "(umask 077; openssl rand -base64 32 > master-key)\n",
        needs=("postgres",),
        replaced={"/etc/tenure": "{folder}"},
    ),
    "how-to/keep-artifacts.md": Stage(
        before="tenure init --project shop\ntenure add One\ntenure serve\necho '# Report' > report.md\n"
        "export URL={server}\nexport TENURE_KEY=$(tenure key create ci --json | {field} secret)\n"
        "export RECEIPT=$(tenure claim --json | {field} receipt)\n"
    ),
    "how-to/move-a-tenant.md": Stage(
        before="export TENURE_URL={postgres} US_STORE_URL={other}\ntenure init --project shop\ntenure tenant add acme\n"
        "(umask 077; openssl rand -base64 32 > master-key)\nTENURE_URL={other} tenure init --project shop\n",
        needs=("postgres",),
        replaced={"/etc/tenure": "{folder}"},
        left_out={
            "tenure tenant move acme": "ends a move that was interrupted; tests/reliability/moves.py kills movers",
            'printf %s "$PROMOTED_URL"': "follows the loss of a server; tests/engine/test_tenant_moves.py promotes one",
        },
    ),
    "how-to/prove-what-happened.md": Stage(
        before="export TENURE_RUN_AGENT=true\ntenure init --project shop\n" + THREE + "mkdir log\n"
        "TENURE_SERVE_ACCESS_LOG={folder}/all tenure serve\n"
        "curl -s {server}/health -o answer {server}/api/v1/projects -o answer\n"
        "until [ $(wc -l < all) -ge 2 ]; do sleep 0.1; done\n"
        "head -n 1 all > log/access.jsonl.1\ntail -n +2 all > log/access.jsonl\n",
        replaced={
            "2026-03-01T12:00Z": NOW, "--at 2h": "--at 0s", "4711": "$(tenure log -n 1 --json | {field} sequence)",
            "12:9f2c…": HEAD, "/var/log/tenure": "{folder}/log",
        },
        between={"tenure audit verify --head": "tenure audit head --json | {field} head > head\n"},
    ),
    "how-to/run-a-team-server.md": Stage(
        before="", needs=("postgres",), replaced=POSTGRES, left_out={"pip install": INDEX},
        between={"tenure key create ann": "tenure init --project shop\n"},
    ),
    "how-to/run-agents-on-another-machine.md": Stage(
        before="mkdir etc gateway server\n"
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout etc/key.pem -out etc/cert.pem\n"
        "cat > gateway/tenure.toml <<END\n{toml 0}END\ncat > server/tenure.toml <<END\n{toml 1}END\ncd gateway\n",
        replaced={"/etc/tenure": "{folder}/etc", "0.0.0.0:7430": "127.0.0.1:{port 2}", "/srv/shop": "{folder}",
                  "build-7.example.org:7430": "127.0.0.1:{port 2}", "tenure trust": "tenure trust --yes"},
        between={"tenure serve": "cd ../server\ntenure init --project shop\ntenure trust --yes\n"},
    ),
    "how-to/run-for-many-teams.md": Stage(before="", needs=("postgres",), replaced=POSTGRES),
    "how-to/run-on-mariadb.md": Stage(before="", left_out={"pip install": INDEX}),
    "how-to/run-on-postgres.md": Stage(
        before="", needs=("postgres",), replaced=POSTGRES, left_out={"pip install": INDEX}
    ),
    "how-to/run-on-valkey.md": Stage(before="", left_out={"pip install": INDEX}),
    "how-to/schedule-work.md": Stage(
        before="tenure init --project shop\n"
        "export SECRET=$(tenure trigger add pulls --on webhook 'Review' --json 2>/dev/null | {field} secret)\n"
        "tenure serve\n",
        replaced={"http://127.0.0.1:7420": "{server}", "curl -X": "curl --fail-with-body -X"},
    ),
    "how-to/separate-tenants-in-the-database.md": Stage(
        before="TENURE_URL={postgres} tenure init --project shop\n", needs=("postgres",),
        replaced={"postgresql://tenure_app@db.example.com/work": "{as tenure_app}"} | POSTGRES,
        left_out={"psql": "asks for a password at a terminal; the test's server trusts every role on loopback"},
    ),
    "how-to/set-up-your-agents.md": Stage(
        before="git init -q .\n",
        left_out=dict.fromkeys(
            ("claude mcp add", "codex mcp add", "gemini mcp add"),
            "changes the settings of an agent CLI; tests/agents/test_over_http.py does so with each of them",
        ),
    ),
    "how-to/trust-a-repository.md": Stage(
        before="tenure init --project shop\nprintf '[run]\\nagent = \"true\"\\n' > tenure.toml\n",
    ),
    "how-to/when-things-break.md": Stage(
        before="tenure init --project shop\n" + THREE + HELD + "tenure serve\n",
        replaced={"https://tenure.example.com": "{server}"},
        between={
            "tenure serve": "export TENURE_SERVE_PORT={port 2}\n", "tenure abort": HELD,
            "tenure recover B-003              # end": "tenure retry B-003\n" + HELD,
        },
    ),
    "how-to/write-a-plan.md": Stage(
        before="tenure init --project shop\ncat > shop.yaml <<'END'\n{yaml 0}END\n"
        "printf '{tasks: [{title: Old, key: B-017-old, track: B}]}' > old.yaml\ntenure plan apply old.yaml\n",
    ),
}  # fmt: skip

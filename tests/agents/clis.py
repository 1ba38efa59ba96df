"""How each agent CLI is started without a terminal, without keys and against a model on loopback.

What a CLI needs is put into its environment and into its own home, so that the process that starts it (a test, or
`tenure run`) need not know that its model is a mock. No one's real settings are read or written.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

# Both CLIs that report costs have this price, Claude Code by its own list, OpenCode by the settings below.
DOLLARS_A_MILLION = {"fresh": Decimal(3), "cached": Decimal("0.3"), "output": Decimal(15)}
CLAUDE_MODEL = "claude-sonnet-4-5"


@dataclass(frozen=True)
class Cli:
    """One agent CLI. `settle` writes its home and gives its variables; `words` start it on a prompt."""

    name: str
    model: str
    settle: Callable[[Path, str], Mapping[str, str]]
    words: Callable[[str, Path], list[str]]
    trust: Callable[[Path, Path], Mapping[str, str]]
    """What a person's click would have done: the folder is trusted. Gives variables, where that is the way."""


def _no_trust(home: Path, folder: Path) -> Mapping[str, str]:
    return {}


# --- Claude Code --------------------------------------------------------------------------------------------


def _settle_claude(home: Path, url: str) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy",
        "ANTHROPIC_MODEL": CLAUDE_MODEL,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _start_claude(prompt: str, folder: Path) -> list[str]:
    words = ["claude", "-p", prompt, "--output-format", "stream-json", "--verbose", "--model", CLAUDE_MODEL]
    return [*words, "--allowedTools", "Bash,mcp__tenure"]


def _trust_claude(home: Path, folder: Path) -> Mapping[str, str]:
    trusted = {"projects": {str(folder): {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["tenure"]}}}
    (home / ".claude.json").write_text(json.dumps(trusted))
    return {}


# --- Codex --------------------------------------------------------------------------------------------------

# The grace: else a busy machine's first request goes out without the tools.
_CODEX = """\
model = "gpt-5.1-codex"
model_provider = "mock"
check_for_update_on_startup = false
mcp_optional_startup_grace_ms = 30000

[analytics]
enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""


def _settle_codex(home: Path, url: str) -> Mapping[str, str]:
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text(_CODEX.format(url=url))
    # Its shell is a login shell, and the system's profile resets PATH.
    (home / ".bash_profile").write_text('export PATH="$AGENT_PATH"\n')
    return {"MOCK_KEY": "dummy"}


def _start_codex(prompt: str, folder: Path) -> list[str]:
    return ["codex", "exec", "--json", "-C", str(folder), "-s", "workspace-write", prompt]


def _trust_codex(home: Path, folder: Path) -> Mapping[str, str]:
    with (home / ".codex" / "config.toml").open("a") as file:
        file.write(f'\n[projects.{json.dumps(str(folder))}]\ntrust_level = "trusted"\n')
    return {}


# --- Gemini CLI ---------------------------------------------------------------------------------------------


def _settle_gemini(home: Path, url: str) -> Mapping[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 1},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {"name": "gemini-2.5-pro"},  # else a second model is asked which one to take
    }
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": url}


def _start_gemini(prompt: str, folder: Path) -> list[str]:
    return ["gemini", "-p", prompt, "-o", "stream-json", "-m", "gemini-2.5-pro", "--approval-mode", "yolo"]


def _trust_gemini(home: Path, folder: Path) -> Mapping[str, str]:
    (home / ".gemini" / "trustedFolders.json").write_text(json.dumps({str(folder): "TRUST_FOLDER"}))
    return {}


# --- OpenCode -----------------------------------------------------------------------------------------------


def _settle_opencode(home: Path, url: str) -> Mapping[str, str]:
    dollars = {name: float(price) for name, price in DOLLARS_A_MILLION.items()}
    price = {"input": dollars["fresh"], "output": dollars["output"], "cache_read": dollars["cached"]}
    model = {"name": "m1", "cost": price, "limit": {"context": 200_000, "output": 8_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "mock",
        "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
        "models": {"m1": model},
    }
    settings = {"autoupdate": False, "share": "disabled", "model": "mock/m1", "provider": {"mock": provider}}
    off = ("AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH")
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        # At its first start it fetches the types for plug-ins, and goes on without them; nobody shall wait for that.
        "npm_config_registry": url,
        "npm_config_fetch_retries": "0",
        **{f"OPENCODE_DISABLE_{name}": "1" for name in off},
    }


def _start_opencode(prompt: str, folder: Path) -> list[str]:
    return ["opencode", "run", prompt, "--format", "json", "-m", "mock/m1"]


# --- Copilot CLI --------------------------------------------------------------------------------------------


def _settle_copilot(home: Path, url: str) -> Mapping[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "dummy",
        "COPILOT_MODEL": "gpt-4.1",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }


def _start_copilot(prompt: str, folder: Path) -> list[str]:
    words = ["copilot", "-p", prompt, "--output-format", "json", "--allow-all", "--disable-builtin-mcps"]
    return [*words, "--usage-output-file", "usage.json"]


def _trust_copilot(home: Path, folder: Path) -> Mapping[str, str]:
    (home / ".copilot").mkdir(exist_ok=True)
    (home / ".copilot" / "config.json").write_text(json.dumps({"trusted_folders": [str(folder)]}))
    return {}


CLIS = {
    cli.name: cli
    for cli in (
        Cli("claude", CLAUDE_MODEL, _settle_claude, _start_claude, _trust_claude),
        Cli("codex", "gpt-5.1-codex", _settle_codex, _start_codex, _trust_codex),
        Cli("gemini", "gemini-2.5-pro", _settle_gemini, _start_gemini, _trust_gemini),
        Cli("opencode", "m1", _settle_opencode, _start_opencode, _no_trust),
        Cli("copilot", "gpt-4.1", _settle_copilot, _start_copilot, _trust_copilot),
    )
}

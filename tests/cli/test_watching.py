"""`watch` in a real pty: what it shows, what its keys do, and that the terminal always comes back."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tenure.cli.watch.fullscreen import Keys
from tenure.cli.watch.state import FILTERS, View
from tenure.core import lifecycle
from tests.cli.conftest import Tenure
from tests.cli.shop import Shop, busy_shop, just_now
from tests.cli.terminal import Terminal

ENTERED, LEFT = "\x1b[?1049h", "\x1b[?1049l"
UP, DOWN, ESCAPE = "\x1b[A", "\x1b[B", "\x1b"


@pytest.fixture
def shop(bare: Tenure) -> Iterator[Shop]:
    shop = busy_shop(bare.folder / ".tenure" / "tenure.db", just_now())
    yield shop
    shop.close()


@pytest.fixture
def watching(bare: Tenure, shop: Shop) -> Iterator[Callable[..., Terminal]]:
    """Starts `watch`; a refresh of a minute proves that what shows sooner was woken by the store or a key."""
    started = []

    def start(*words: object, columns: int = 80, lines: int = 24) -> Terminal:
        command = bare.command("-C", bare.folder, "watch", "--project", "shop", *(words or ("-r", 60)))
        terminal = Terminal(command, environ=bare.environ, columns=columns, lines=lines)
        started.append(terminal)
        terminal.until("q quit")
        return terminal

    yield start
    for terminal in started:
        terminal.__exit__()


def is_given_back(terminal: Terminal) -> bool:
    return terminal.raw.count(ENTERED) == terminal.raw.count(LEFT) and all(
        (not terminal.screen.is_alternate, terminal.screen.is_cursor_shown, terminal.are_settings_back)
    )


# --- what it shows ---


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 50), (119, 18)])
def test_it_shows_agents_tracks_tasks_and_events(watching: Callable[..., Terminal], columns: int, lines: int) -> None:
    text = watching(columns=columns, lines=lines).text
    for part in ("Agents", "Tracks", "Tasks: open", "Events", "shop"):
        assert part in text
    assert "● C-001 Write the API" in text
    assert "75 %" in text
    assert "ann becomes the leader, term 1" in text
    assert all(len(line) <= columns for line in text.split("\n"))


def test_a_very_small_terminal_shows_the_tasks(watching: Callable[..., Terminal]) -> None:
    terminal = watching(columns=44, lines=10)
    assert "● C-001 Write" in terminal.text
    assert "Agents" not in terminal.text


def test_what_others_do_shows_at_once(watching: Callable[..., Terminal], shop: Shop) -> None:
    terminal = watching()
    shop.clock.now = just_now(0).now
    shop.mia.add("Paint the door red", track="D")
    assert "mia adds D-002-paint-the-door-red" in terminal.until("Paint the door red")


def test_what_only_time_brings_shows_with_the_refresh(
    watching: Callable[..., Terminal], shop: Shop, bare: Tenure
) -> None:
    shop.clock.now = just_now(0).now
    shop.mia.add("Boil an egg", track="Z")
    assert bare("claim", "Z-001", "--lease", 1, "--agent", "eve", "--project", "shop").code == 0
    terminal = watching("-r", 0.2)
    terminal.press("/boil\r")
    terminal.until(lambda text: "Boil an egg" in text and "ready" in text.split("Boil an egg")[1].split("\n")[0])


def test_a_resized_terminal_is_filled_anew(watching: Callable[..., Terminal]) -> None:
    terminal = watching()
    assert terminal.text.count("\n╭") == 3
    terminal.resize(160, 40)
    text = terminal.until(lambda text: "q quit" in text and max(map(len, text.split("\n"))) == 160)
    assert text.split("\n")[1].count("╭") == 2
    assert "Write the API" in text


# --- keys ---


def test_j_and_k_and_arrows_move(watching: Callable[..., Terminal]) -> None:
    terminal = watching()
    assert "C-001" in terminal.selected
    terminal.press("j")
    terminal.until(lambda _: "D-001" in terminal.selected)
    terminal.press(DOWN)
    terminal.until(lambda _: "C-002" in terminal.selected)
    terminal.press("k" + UP)
    terminal.until(lambda _: "C-001" in terminal.selected)
    terminal.press("G")
    terminal.until(lambda _: "G-002" in terminal.selected)
    terminal.press("g")
    terminal.until(lambda _: "C-001" in terminal.selected)


@pytest.mark.parametrize("key", ["\r", " "])
def test_enter_and_space_show_a_task_with_its_history(watching: Callable[..., Terminal], key: str) -> None:
    terminal = watching()
    terminal.press(key)
    text = terminal.until("Lineage")
    assert "C-001-write-the-api" in text
    assert "refused: STALE_GENERATION, from bo with generation 1" in text
    assert "held by cy in session cy-1: 75 %, the last endpoint" in text
    assert "Tasks: open" not in text
    terminal.press("j")  # the detail follows
    terminal.until("held by ann")
    terminal.press(key)
    terminal.until("Tasks: open")


def test_a_long_detail_can_be_scrolled(watching: Callable[..., Terminal], shop: Shop) -> None:
    shop.mia.update("E-001", description="\n".join(f"line {n}" for n in range(30)))
    terminal = watching()
    terminal.press("/ship\r\r")
    terminal.until("line 10")
    terminal.press("J" * 12)
    terminal.until(lambda text: "line 20" in text and "Ship it" not in text)
    terminal.press("K" * 12)
    terminal.until("Ship it")


def test_f_filters_by_state(watching: Callable[..., Terminal]) -> None:
    terminal = watching()
    terminal.press("f")
    text = terminal.until("Tasks: in progress")
    assert "Write the API" in text
    assert "Ship it" not in text
    terminal.press("f")
    text = terminal.until("Tasks: for a person")
    assert "Send a mail" in text
    assert "Find out why" in text
    terminal.press("fff")
    assert "Design the schema" in terminal.until("Tasks: finished")
    terminal.press("F")
    terminal.until("Tasks: waiting")


def test_slash_searches_as_one_types(watching: Callable[..., Terminal]) -> None:
    terminal = watching()
    terminal.press("/sign")
    text = terminal.until(lambda text: "3 of 9" in text)
    assert "Build the sign-in page" in text
    assert "Ship it" not in text
    terminal.press("\x7f\x7f\x7f\x7fann")
    terminal.until(lambda text: "1 of 9" in text and "Build the sign-in page" in text)
    terminal.press(ESCAPE)
    terminal.until("Ship it")


def test_a_task_that_is_not_on_the_screen_is_looked_up_by_name(watching: Callable[..., Terminal]) -> None:
    terminal = watching()
    terminal.press("/b-001\r")
    assert "seven tables, with indexes" in terminal.until("Lineage")
    terminal.press(ESCAPE)
    terminal.until("Tasks: open")
    terminal.press("/nothing-such\r")
    terminal.until("no task")


def test_p_holds_the_view_still_while_the_work_goes_on(watching: Callable[..., Terminal], shop: Shop) -> None:
    terminal = watching("-r", 0.1)
    terminal.press("p")
    terminal.until(" view paused ")
    shop.clock.now = just_now(0).now
    shop.mia.add("Paint the door red", track="D")
    terminal.press("j")  # it still answers to keys, and by then has had all the time to be woken
    terminal.until(lambda _: "D-001" in terminal.selected)
    assert "Paint the door red" not in terminal.text
    terminal.press("p")
    terminal.until("Paint the door red")


def test_question_mark_shows_every_key(watching: Callable[..., Terminal]) -> None:
    terminal = watching()
    terminal.press("?")
    text = terminal.until("any key goes back")
    assert "pause the view" in text
    terminal.press("x")
    terminal.until("Tasks: open")


# --- the terminal comes back ---


def test_q_leaves_and_gives_the_terminal_back(watching: Callable[..., Terminal]) -> None:
    terminal = watching()
    assert terminal.screen.is_alternate
    assert not terminal.screen.is_cursor_shown
    assert not terminal.are_settings_back
    terminal.press("q")
    assert terminal.ended() == 0
    assert is_given_back(terminal)
    assert terminal.text.strip() == ""


def test_ctrl_c_gives_the_terminal_back(watching: Callable[..., Terminal]) -> None:
    terminal = watching()
    terminal.press("\x03")
    assert terminal.ended() == 130
    assert is_given_back(terminal)
    assert "Traceback" not in terminal.raw


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_gives_the_terminal_back(watching: Callable[..., Terminal], number: int) -> None:
    terminal = watching()
    terminal.signal(number)
    assert terminal.ended() == -number
    assert is_given_back(terminal)


def test_an_error_gives_the_terminal_back(bare: Tenure) -> None:
    script = "from tenure.cli.watch.fullscreen import Fullscreen\nwith Fullscreen() as s: s.show('x'); 1 / 0"
    with Terminal([sys.executable, "-c", script], environ=bare.environ) as terminal:
        assert terminal.ended() == 1
        assert ENTERED in terminal.raw
        assert is_given_back(terminal)
        assert terminal.raw.index(LEFT) < terminal.raw.index("ZeroDivisionError")


def test_it_ends_with_its_terminal(watching: Callable[..., Terminal]) -> None:
    assert watching("-r", 0.1).hang_up() == -signal.SIGHUP


SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
_, status = os.waitpid(child, os.WUNTRACED)
os.tcsetpgrp(0, os.getpgrp())
print("STOPPED" if os.WIFSTOPPED(status) else "ENDED", flush=True)
input()
os.tcsetpgrp(0, child)
os.kill(child, signal.SIGCONT)
_, status = os.waitpid(child, 0)
print("CODE", os.waitstatus_to_exitcode(status), flush=True)
"""


def test_ctrl_z_lends_the_terminal_to_the_shell(bare: Tenure, shop: Shop) -> None:
    words = [sys.executable, "-c", SHELL, *bare.command("-C", bare.folder, "watch", "--project", "shop")]
    with Terminal(words, environ=bare.environ, columns=80, lines=24) as terminal:
        terminal.until("Write the API")
        terminal.press("\x1a")
        terminal.until("STOPPED")
        assert is_given_back(terminal)
        terminal.press("\n")
        terminal.until("Write the API")
        assert terminal.screen.is_alternate
        terminal.press("q")
        terminal.until("CODE 0")
        assert is_given_back(terminal)


AWAY = """
import os, sys
from tenure.cli import main
from tenure.cli.watch import watch as watching
from tenure.core.errors import StoreUnavailable
reads = watching.read
def read(*given):
    if os.path.exists(sys.argv[1]):
        raise StoreUnavailable("the store has gone for a walk")
    return reads(*given)
watching.read = read
sys.exit(main.main(sys.argv[2:]))
"""


def test_a_store_that_is_away_for_a_while_is_told_on_the_screen(bare: Tenure, shop: Shop) -> None:
    away = bare.folder / "away"
    words = [sys.executable, "-c", AWAY, str(away), "-C", str(bare.folder), "watch", "--project", "shop", "-r", "0.1"]
    with Terminal(words, environ=bare.environ, columns=80, lines=24) as terminal:
        terminal.until("q quit")
        away.touch()
        assert "Write the API" in terminal.until("the store has gone for a walk")  # what was last seen stays
        away.unlink()
        terminal.until("q quit")
        terminal.press("q")
        assert terminal.ended() == 0


# --- without a terminal ---


def test_without_a_terminal_it_prints_one_snapshot(bare: Tenure, shop: Shop) -> None:
    said = bare.process("watch", "--project", "shop")
    assert said.code == 0
    assert "leader ann" in said.out
    assert "Write the API" in said.out
    assert "bo's result for C-001-write-the-api with generation 1 is refused: STALE_GENERATION" in said.out
    assert "\x1b" not in said.out


def test_as_json_it_is_one_value(bare: Tenure, shop: Shop) -> None:
    said = bare.process("watch", "--project", "shop", "--json").json
    assert said["leader"]["holder"] == "ann"
    assert {task["ref"] for task in said["open_tasks"]} >= {"C-001", "D-001"}
    assert said["events"][-1]["kind"] == "leader.elected"


def test_a_dumb_terminal_gets_the_snapshot(bare: Tenure, shop: Shop) -> None:
    words = [sys.executable, "-c", "import os, sys; os.environ['TERM'] = 'dumb'; os.execv(sys.argv[1], sys.argv[1:])"]
    command = [*words, *bare.command("-C", bare.folder, "watch", "--project", "shop")]
    with Terminal(command, environ=bare.environ) as terminal:
        assert terminal.ended() == 0
    assert ENTERED not in terminal.raw
    assert "Write the API" in terminal.raw


def test_nonsense_for_a_refresh_is_refused(bare: Tenure, shop: Shop) -> None:
    for value in ("0", "-1", "soon", "nan", "1e9"):
        assert bare("watch", "-r", value, "--project", "shop").code == 2, value


# --- without a store ---


def test_keys_are_told_apart_however_they_arrive() -> None:
    keys = Keys()
    assert keys.feed(b"j\x1b[A\x1bOB\r\x7f") == ["j", "up", "down", "enter", "backspace"]
    assert keys.feed(b"\x1b[") == []
    assert keys.is_partial
    assert keys.feed(b"5~q") == ["page_up", "q"]
    assert keys.feed("ü".encode()[:1]) == []
    assert keys.feed("ü".encode()[1:]) == ["ü"]
    assert keys.feed(b"\x1b") == []
    assert keys.flush() == ["escape"]
    assert keys.flush() == []
    assert keys.feed(b"\x1b[99;5u\x00\x1bx") == []  # what nobody asked for


def test_the_selection_stays_on_its_task_while_others_come_and_go() -> None:
    view = View()
    view.keep_in(["a", "b", "c"])
    assert view.selected == "a"
    view.press("j", ["a", "b", "c"])
    view.keep_in(["x", "y", "b"])
    assert view.selected == "b"
    view.keep_in(["x", "y"])
    assert view.selected == "x"
    view.keep_in([])
    assert view.selected is None
    view.press("j", [])
    view.press("enter", [])
    assert not view.is_detailed


def test_every_state_is_in_some_filter() -> None:
    assert set(FILTERS[-1].states) == set(lifecycle.STATES)
    assert {state for one in FILTERS[:-1] for state in one.states} == set(lifecycle.STATES)


def test_rich_is_imported_for_the_live_view_alone(bare: Tenure, shop: Shop) -> None:
    script = (
        "import sys; from tenure.cli.main import main; code = main(sys.argv[1:]);"
        "print('rich' in sys.modules, file=sys.stderr); sys.exit(code)"
    )
    for words in (["watch"], ["status"], ["doctor"], ["history", "C-001"]):
        command = [sys.executable, "-c", script, "-C", str(bare.folder), "--project", "shop", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=bare.environ)
        assert done.stderr.strip() == "False", words

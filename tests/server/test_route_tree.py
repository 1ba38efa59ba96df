"""The tree finds each route of the table, and says what is wrong with what it does not find."""

import pytest

from tenure.client.routes import COMMANDS, QUERIES
from tenure.server.route_tree import NoMethod, NoRoute, RouteTree


@pytest.fixture(scope="module")
def tree():
    made = RouteTree()
    for route in (*COMMANDS, *QUERIES):
        made.add(route.method, route.path, route)
    return made


@pytest.mark.parametrize("route", [*COMMANDS, *QUERIES], ids=lambda r: f"{r.method} {r.path}")
def test_every_route_is_found_with_its_fields(tree, route):
    path = route.path.replace("{", "the-").replace("}", "")
    found, fields = tree.find(route.method, path)
    assert found is route
    names = [part.strip("{}") for part in route.path.split("/") if part.startswith("{")]
    assert fields == {name: f"the-{name}" for name in names}


def test_fields_are_unquoted_after_the_path_was_taken_apart(tree):
    _, fields = tree.find("GET", "/projects/a%2Fb/tasks/A-001%3A%3A2")
    assert fields == {"project": "a/b", "task": "A-001::2"}


@pytest.mark.parametrize("path", ["/", "", "/projects/p/nope", "/projects//tasks", "/projects/p/tasks/t/history/more"])
def test_what_is_not_there_is_said_so(tree, path):
    with pytest.raises(NoRoute):
        tree.find("GET", path)


def test_a_wrong_method_names_the_right_ones(tree):
    with pytest.raises(NoMethod) as told:
        tree.find("DELETE", "/projects/p")
    assert told.value.allowed == "GET, PUT"


def test_head_is_a_get_without_its_body(tree):
    assert tree.find("HEAD", "/projects/p") == tree.find("GET", "/projects/p")

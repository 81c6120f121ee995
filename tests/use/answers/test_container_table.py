"""A pod's labels are found in what the agent notes of its containers."""

from dataclasses import replace

from tests.use.answers.lives import make_named

from nodescope.collect.containers.names import Name
from nodescope.use.answers.container_table import labels_of, parse_labels


def test_the_labels_of_a_pod_are_those_that_the_agent_wrote() -> None:
    life = make_named("c1", "n1", "shop", "web-1", "web")
    written = Name(labels="app=web,tier=front").labels
    noted = replace(life, subject=replace(life.subject, details={"labels": written, "image": "web:1"}))
    assert labels_of(noted) == {"app": "web", "tier": "front"}


def test_a_container_without_labels_has_none() -> None:
    assert labels_of(make_named("c1", "n1", "", "", "")) == {}


def test_labels_that_are_neither_form_are_no_labels() -> None:
    """A file of somebody else's may say anything."""
    assert parse_labels("{not json") == {}
    assert parse_labels("[1]") == {}
    assert parse_labels("[" * 100_000) == {}
    assert parse_labels('{"app": "web"}') == {"app": "web"}

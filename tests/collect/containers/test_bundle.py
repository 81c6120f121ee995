"""What runtimes write about containers: names and images are taken, nothing else."""

import gc
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.nodes import Node
from tests.nodes.bundles import CONTAINERD, SECRET, containerd_file, crio_file, docker_file
from tests.nodes.pods import WEB, container_id
from tests.support import FixtureNode

from nodescope.collect.containers.bundle import PLACES, find_member, parse_bundle, read_bundle
from nodescope.collect.containers.names import Name

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def write(node: Node, files: dict[str, str | bytes]) -> None:
    for path, text in files.items():
        assert isinstance(text, str)
        node.write(path, text)


def test_containerd_tells_names_image_and_sandbox(tmp_path: Path) -> None:
    node = Node(tmp_path)
    write(node, containerd_file(WEB, "app", "shop/web:1.4"))
    write(node, containerd_file(WEB, "pause", "pause:3.10", "sandbox"))
    found = read_bundle(node.root(), WEB.container("app"))
    assert found
    assert found.name == Name(WEB.namespace, WEB.name, "app", "shop/web:1.4", source="bundle")
    assert not found.is_sandbox
    sandbox = read_bundle(node.root(), WEB.container("pause"))
    assert sandbox
    assert (sandbox.is_sandbox, sandbox.name.container, sandbox.name.image) == (True, "", "pause:3.10")


def test_crio_and_docker_tell_the_same_in_their_own_words(tmp_path: Path) -> None:
    node = Node(tmp_path)
    write(node, {**crio_file(WEB, "app", "shop/web:1.4"), **docker_file("redis", "redis:7")})
    found = read_bundle(node.root(), WEB.container("app"))
    assert found
    assert found.name == Name(WEB.namespace, WEB.name, "app", "shop/web:1.4", source="bundle")
    docker = read_bundle(node.root(), container_id("docker/redis"))
    assert docker
    assert docker.name == Name(image="redis:7", source="bundle", alias="redis")


def test_an_id_that_is_none_opens_no_file(tmp_path: Path) -> None:
    """A path would lead out of the folder."""
    node = Node(tmp_path)
    node.write(f"{CONTAINERD}/x/config.json", '{"annotations": {"io.kubernetes.cri.image-name": "y"}}')
    assert read_bundle(node.root(), "../k8s.io/x") is None
    assert read_bundle(node.root(), "x") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"annotations": null}', '{"annotations": [1]}', '{"annotations']
)
def test_a_broken_file_says_nothing(text: str) -> None:
    assert parse_bundle(text.encode(), PLACES[0]) is None


@given(st.dictionaries(st.text(), JSON), JSON)
def test_a_member_is_found_as_a_decoder_would_find_it(others: dict[str, object], value: object) -> None:
    """forall documents: find_member(dumps(document), key) decodes to document[key], or is empty for a plain word."""
    document = {**others, "annotations": value}
    found = find_member(json.dumps(document).encode(), ("annotations",))
    if isinstance(value, (dict, list, str)):
        assert json.loads(found) == value
    else:
        assert found == b""


@given(st.binary())
def test_any_bytes_are_answered(data: bytes) -> None:
    for place in PLACES:
        parse_bundle(data, place)


def test_environment_variables_never_leave(tmp_path: Path) -> None:
    """Neither a scrape, nor /status, nor a frame, nor anything the agent keeps holds a secret of a bundle."""
    node = FixtureNode("cgroup2-systemd", tmp_path)
    assert SECRET in (node.root / CONTAINERD / WEB.container("app") / "config.json").read_text()
    frames = node.run()
    text = node.parts.scrape.render((), openmetrics=False)
    assert 'image="registry.example/shop/web:1.4"' in text
    assert SECRET not in text
    assert SECRET not in repr(frames)
    gc.collect()
    names = node.parts.context.names
    assert SECRET not in repr(vars(names))
    kept = [one for one in gc.get_objects() if isinstance(one, dict) and "example.com/token" in one]
    assert kept == []
    node.close()

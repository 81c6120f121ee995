"""Settings: who wins, where each came from, and what is refused by name."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import HOSTILE, examples

from nodescope.base.errors import SettingsRejected
from nodescope.base.settings import FIELDS, Settings
from nodescope.base.settings_load import flatten_toml, load_settings

ORIGINS = ("toml", "seed", "environment", "flag")


@given(st.sets(st.sampled_from(ORIGINS)))
def test_the_strongest_origin_wins(origins: set[str]) -> None:
    """Precedence: flag > NODESCOPE_* > the seeds' names > TOML > default."""
    toml = {"node": "from-toml"} if "toml" in origins else {}
    environment = {}
    if "seed" in origins:
        environment["NODE_NAME"] = "from-seed"
    if "environment" in origins:
        environment["NODESCOPE_NODE"] = "from-environment"
    flags = {"node": "from-flag"} if "flag" in origins else {}
    loaded = load_settings(flags, environment, toml, "n.toml")
    strongest = max(origins, key=ORIGINS.index, default=None)
    words = {"toml": "n.toml", "seed": "NODE_NAME", "environment": "NODESCOPE_NODE", "flag": "command line"}
    assert loaded.settings.node == (f"from-{strongest}" if strongest else "")
    assert loaded.origins["node"] == (words[strongest] if strongest else "default")


def test_the_promised_defaults() -> None:
    settings = load_settings({}, {}, {}).settings
    assert settings == Settings()
    assert settings.listen == ("127.0.0.1:9100",)
    assert (settings.interval_seconds, settings.ring_seconds, settings.ring_bytes) == (1.0, 120.0, 64 * 2**20)
    assert settings.process_top == 25
    assert settings.names == "compatible"


@pytest.mark.parametrize(
    ("environment", "key", "value"),
    [
        ({"NODESCOPE_RING_SECONDS": "5m"}, "ring_seconds", 300.0),
        ({"NODESCOPE_RING_BYTES": "8MiB"}, "ring_bytes", 8 * 2**20),
        ({"NODESCOPE_PSS": "no"}, "pss", False),
        ({"NODESCOPE_LISTEN": "0.0.0.0:1, :2"}, "listen", ("0.0.0.0:1", ":2")),
        ({"NODESCOPE_TOKEN_FILE": "/x"}, "token_file", Path("/x")),
        ({"LOG_LEVEL": "WARNING"}, "log_level", "warning"),
        ({"METRICS_PATH": "/m"}, "metrics_path", "/m"),
        ({"CLUSTER_NAME": "c"}, "cluster", "c"),
    ],
)
def test_text_becomes_the_type_of_the_setting(environment: dict[str, str], key: str, value: object) -> None:
    assert getattr(load_settings({}, environment, {}).settings, key) == value


def test_one_more_listener_stays_on_the_address_of_the_first() -> None:
    loaded = load_settings({}, {"EXPORTER_PORT": "9400"}, {})
    assert loaded.settings.listen == ("127.0.0.1:9100", "127.0.0.1:9400")
    assert loaded.origins["listen"] == "default and EXPORTER_PORT"


def test_a_toml_table_and_an_underscore_are_the_same_setting() -> None:
    assert flatten_toml({"process": {"top": 3}}) == flatten_toml({"process_top": 3})
    assert load_settings({}, {}, {"ring": {"seconds": "2m"}}).settings.ring_seconds == 120.0


@pytest.mark.parametrize(
    ("flags", "environment", "toml", "words"),
    [
        ({}, {}, {"ring_second": 30}, 'did you mean "ring_seconds"'),
        ({}, {}, {"ring": "3m"}, "no setting 'ring'; did you mean \"ring_seconds\"?"),
        ({}, {"NODESCOPE_COPY_RATE": "5MiB"}, {}, 'did you mean "copy_rate_bytes"?'),
        ({}, {"NODESCOPE_RNIG_SECONDS": "30"}, {}, "NODESCOPE_RNIG_SECONDS"),
        ({}, {"NODESCOPE_RING_SECONDS": "abc"}, {}, "a duration such as 500ms"),
        ({}, {"NODESCOPE_RING_SECONDS": "1s"}, {}, "at least 30"),
        ({"interval_seconds": "2h"}, {}, {}, "at most 60"),
        ({"ring_bytes": "1e999"}, {}, {}, "a size such as 64MiB"),
        ({"process_top": "2.5"}, {}, {}, "a whole number"),
        ({"budget_ratio": "nan"}, {}, {}, "a share such as 0.05 or 5%"),
        ({"budget_ratio": "%"}, {}, {}, "a share such as 0.05 or 5%"),
        ({"retention_days": "soon"}, {}, {}, "days, or a duration such as 12h"),
        ({}, {}, {"pss": "perhaps"}, "true or false"),
        ({}, {}, {"names": "mine"}, "one of compatible, own"),
        ({}, {}, {"node": True}, "text"),
        ({}, {}, {"ring_seconds": [30, 40]}, "seconds"),
        ({}, {}, {"node": ["a", "b"]}, "text"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_does(
    flags: dict[str, object], environment: dict[str, str], toml: dict[str, Any], words: str
) -> None:
    with pytest.raises(SettingsRejected, match=words):
        load_settings(flags, environment, toml)


TOML_VALUES = st.one_of(
    st.booleans(), st.integers(), st.floats(), HOSTILE, st.lists(HOSTILE | st.integers(), max_size=2)
)


@given(st.dictionaries(st.sampled_from(sorted(FIELDS)), TOML_VALUES, max_size=4))
@examples(600)
def test_any_toml_gives_settings_of_the_right_type_or_a_refusal(toml: dict[str, Any]) -> None:
    """forall values: settings within their bounds, or SettingsRejected that names a key."""
    try:
        settings = load_settings({}, {}, toml).settings
    except SettingsRejected as error:
        assert any(key in str(error) for key in toml)  # noqa: PT017 - or it is not raised at all
        return
    for key, field in FIELDS.items():
        value = getattr(settings, key)
        default = getattr(Settings(), key)
        if default is not None:
            assert type(value) in (type(default), int if isinstance(default, float) else type(default))
        if field.metadata.get("choices"):
            assert value in field.metadata["choices"]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            assert field.metadata.get("least") is None or value >= field.metadata["least"]
            assert field.metadata.get("most") is None or value <= field.metadata["most"]


def test_a_setting_that_is_off_is_not_a_magic_number() -> None:
    """Style: off is `enabled = false`; 0 keeps the defaults in exactly one place."""
    zeros = [
        item.name
        for item in dataclasses.fields(Settings)
        if item.default == 0 and not isinstance(item.default, bool)
    ]
    assert zeros == ["series_limit"]


LINKS = {
    "NODESCOPE_EXTENDER_SERVICE_HOST": "10.0.0.7",
    "NODESCOPE_EXTENDER_SERVICE_PORT": "8888",
    "NODESCOPE_EXTENDER_SERVICE_PORT_EXTENDER": "8888",
    "NODESCOPE_EXTENDER_PORT": "tcp://10.0.0.7:8888",
    "NODESCOPE_EXTENDER_PORT_8888_TCP": "tcp://10.0.0.7:8888",
    "NODESCOPE_EXTENDER_PORT_8888_TCP_ADDR": "10.0.0.7",
}


def test_variables_that_the_kubelet_makes_of_a_service_are_no_settings() -> None:
    assert load_settings({}, LINKS, {}).settings == Settings()


def test_a_service_called_exporter_is_no_port_to_listen_at() -> None:
    """Anybody's Service in our namespace: every program of ours ended with an error."""
    links = {"EXPORTER_SERVICE_HOST": "10.0.0.8", "EXPORTER_PORT": "tcp://10.0.0.8:9400"}
    assert load_settings({}, links, {}).settings == Settings()
    assert "127.0.0.1:9400" in load_settings({}, {**links, "EXPORTER_PORT": "9400"}, {}).settings.listen
    with pytest.raises(SettingsRejected, match="EXPORTER_PORT"):
        load_settings({}, {"EXPORTER_PORT": links["EXPORTER_PORT"]}, {})


def test_a_misspelt_setting_is_no_variable_of_a_service() -> None:
    """Of a Service its address would be there, too."""
    for name in ("NODESCOPE_EXTENDER_PORT", "NODESCOPE_RETENTION_PORT"):
        with pytest.raises(SettingsRejected, match=name):
            load_settings({}, {name: "8888"}, {})
    with pytest.raises(SettingsRejected, match="NODESCOPE_EXTENDER_PROT"):
        load_settings({}, {**LINKS, "NODESCOPE_EXTENDER_PROT": "1"}, {})

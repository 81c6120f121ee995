"""An answer has room for 1,500 tokens: what stands there twice goes first, then whole findings, and these are counted."""

import json
from dataclasses import replace

from nodescope.use.mcp.protocol.answer import READ_BYTES, ToolAnswer, ToolFinding, fit

IMAGE = "registry.example/a-team/a-service-with-a-long-name:1.4.2"


def finding(number: int) -> ToolFinding:
    return ToolFinding(
        f'"shop/pod-{number}" runs the image {IMAGE} and was seen {number} times.',
        "container",
        node="node-a",
        container=f"pod-{number}",
        samples=3600,
        missing_share=0.0,
        start_at=1.7e9,
        end_at=1.7e9,
        at=1.7e9,
        evidence={"image": IMAGE, "share": 0.123456789, "bytes": 123456789.0, "number": number},
        weight=number,
    )


def read_bytes(text: str, content: dict[str, object]) -> int:
    return len(text) + len(json.dumps(content, separators=(",", ":")))


def test_a_small_answer_keeps_every_fact() -> None:
    text, content = fit(ToolAnswer("Three.", findings=tuple(map(finding, range(3)))))
    assert read_bytes(text, content) <= READ_BYTES
    assert [one["evidence"]["image"] for one in content["findings"]] == [IMAGE] * 3
    assert content["findings"][2]["from"] == content["findings"][2]["at"] == 1.7e9
    assert "left_out" not in content


def test_a_large_answer_says_nothing_twice_and_counts_what_it_leaves_out() -> None:
    many = tuple(map(finding, range(12)))
    full = ToolAnswer("Twelve.", findings=many, rest="a shorter span shows them", looked_at="x" * 900)
    text, content = fit(full)
    assert read_bytes(text, content) <= READ_BYTES
    assert [one["container"] for one in content["findings"]] == [one.container for one in many]
    first = content["findings"][0]
    assert first["evidence"] == {"share": 0.12346, "bytes": 123456789.0, "number": 0}
    assert ("from" in first, first["at"], first["samples"]) == (False, 1.7e9, 3600)
    assert "samples" not in content["findings"][1]

    long = tuple(replace(one, sentence=one.sentence + " Further words." * 20) for one in many)
    text, content = fit(replace(full, findings=long))
    assert read_bytes(text, content) <= READ_BYTES
    kept = [one["container"] for one in content["findings"]]
    assert kept == [one.container for one in many[-len(kept) :]]
    assert content["left_out"] == 12 - len(kept) > 0
    assert f"- and {12 - 5} more: a shorter span shows them" in text

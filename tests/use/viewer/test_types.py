"""The page's types are those of the published OpenAPI document."""

import pytest
from tools.generate_types import PAGE, render_type, render_types


def test_the_types_of_the_page_are_what_would_be_generated() -> None:
    """Types that lag behind the API are wrong without an error: `make docs`, then read the diff."""
    assert PAGE.read_text() == render_types(), "web/src/types.ts lags behind the API: make docs"


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"$ref": "#/components/schemas/GapJson"}, "GapJson"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number | null"),
        ({"type": "array", "items": {"type": "integer"}}, "number[]"),
        ({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}}, "(number | null)[]"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "Record<string, string>"),
        ({"enum": ["a", "b"], "type": "string"}, '"a" | "b"'),
        ({"const": "ok", "type": "string"}, '"ok"'),
        ({"type": "boolean"}, "boolean"),
    ],
)
def test_each_kind_of_schema_has_its_type(schema: dict[str, object], written: str) -> None:
    assert render_type(schema) == written


def test_a_schema_that_is_not_known_is_refused() -> None:
    """An `any` in the generated file would switch the checker off where it is needed."""
    with pytest.raises(ValueError, match="no TypeScript is known"):
        render_type({"type": "object", "additionalProperties": True})

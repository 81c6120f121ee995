"""
Strict schemas of every Kubernetes kind, made from the OpenAPI document of the pinned version.

kubeconform's own schemas lie on the internet and forgive unknown fields; these
come with the Kubernetes module that the test control plane is built from, and a
misspelt field is an error.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

CLUSTER = Path(__file__).parent.parent / "cluster"
# These take whatever they are given.
OPEN = {"JSONSchemaProps", "RawExtension", "JSON", "FieldsV1", "Quantity", "IntOrString"}


def read_document() -> dict[str, Any]:
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"]
    where = subprocess.run(command, cwd=CLUSTER, capture_output=True, text=True, check=True).stdout.strip()
    if not where:
        subprocess.run(["go", "mod", "download", "k8s.io/kubernetes"], cwd=CLUSTER, check=True)
        where = subprocess.run(
            command, cwd=CLUSTER, capture_output=True, text=True, check=True
        ).stdout.strip()
    document: dict[str, Any] = json.loads((Path(where) / "api/openapi-spec/swagger.json").read_text())
    return document


def write_schemas(folder: Path) -> Path:
    """One file per kind, and one with all definitions that they refer to."""
    definitions = read_document()["definitions"]
    for name, definition in definitions.items():
        tighten(definition, name.rsplit(".", 1)[-1])
    (folder / "all.json").write_text(
        json.dumps({"definitions": definitions}).replace("#/definitions", "all.json#/definitions")
    )
    for name, definition in definitions.items():
        for known in definition.get("x-kubernetes-group-version-kind", []):
            # kubeconform asks for "deployment-apps-v1.json" and "service-v1.json".
            group = known["group"].split(".")[0]
            suffix = "-".join(part for part in (known["kind"], group, known["version"]) if part)
            (folder / f"{suffix.lower()}.json").write_text(
                json.dumps({"$ref": f"all.json#/definitions/{name}"})
            )
    return folder


def tighten(definition: dict[str, Any], name: str) -> None:
    if definition.get("format") == "int-or-string" or name == "Quantity":
        definition["type"] = ["string", "integer", "number"]
        definition.pop("format", None)
    for field in definition.get("properties", {}).values():
        if field.get("format") == "int-or-string":
            field["type"] = ["string", "integer"]
    if "properties" in definition and name not in OPEN:
        definition["additionalProperties"] = False

"""Of the manifests on stdin, those of one component: pick_component.py mcp."""

import sys

import yaml


def main() -> None:
    component = sys.argv[1]
    sys.stdout.write("# Rendered by `make manifests`; change deploy/chart instead.\n")
    for document in sys.stdin.read().split("\n---\n"):
        thing = yaml.safe_load(document)
        if thing and belongs(thing, component):
            sys.stdout.write(f"---\n{document.strip()}\n")


def belongs(thing: dict[str, dict[str, dict[str, str]]], component: str) -> bool:
    labels = thing["metadata"].get("labels", {})
    # The policy that lets the component reach the agents carries the agents' label.
    name = str(thing["metadata"]["name"])
    return labels.get("app.kubernetes.io/component") == component or name.endswith("-viewer")


if __name__ == "__main__":
    main()

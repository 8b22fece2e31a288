"""What `kubectl kustomize` makes of a folder: by kubectl where it is there, else by as much of kustomize as our files use.

The second one refuses what it does not know, and a test holds it against kubectl.
"""

from __future__ import annotations

import base64
import copy
import functools
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import ROOT

DEPLOY = ROOT / "deploy"
Document = dict[str, Any]
_KNOWN = {
    "apiVersion", "kind", "namespace", "resources", "components", "labels", "configMapGenerator", "secretGenerator", "images",
    "replicas", "patches",
}  # fmt: skip
_CLUSTER_WIDE = {"Namespace"}


def built(folder: str, *extra: str) -> list[Document]:
    """Every document of that kustomization; `extra` are components beside those that it names."""
    documents = by_kubectl(folder) if shutil.which("kubectl") and not extra else by_hand(DEPLOY / folder, extra)
    return copy.deepcopy(documents)


@functools.cache
def by_kubectl(folder: str) -> list[Document]:
    done = subprocess.run(["kubectl", "kustomize", str(DEPLOY / folder)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    # Generated maps are called after what they hold, so that pods are made anew when it changes.
    text = re.sub(r"\bmenuwatch-[0-9a-z]{10}$", "menuwatch", done.stdout, flags=re.MULTILINE)
    assert text != done.stdout, "names of generated maps have a suffix"
    found: list[Document] = list(yaml.safe_load_all(text))
    for one in found:
        if one["kind"] == "Secret":  # it breaks long values into lines
            one["data"] = {name: "".join(value.split()) for name, value in one["data"].items()}
    return found


def by_hand(folder: Path, extra: tuple[str, ...] = ()) -> list[Document]:
    text = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    assert set(text) <= _KNOWN, f"{folder}: {set(text) - _KNOWN}"
    found: list[Document] = []
    for name in text["resources"]:
        path = folder / name
        assert path.exists(), f"{folder / 'kustomization.yaml'} names {name}, which is not there"
        found += (
            by_hand(path.resolve()) if path.is_dir() else list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        )
    for name in text.get("components", []):
        found += by_hand((folder / name).resolve())
    for name in extra:
        found += by_hand(DEPLOY / name)
    for entry in text.get("configMapGenerator", []):
        _generate(found, "ConfigMap", entry)
    for entry in text.get("secretGenerator", []):
        _generate(found, "Secret", entry)
    for entry in text.get("patches", []):
        _patch(found, entry)
    for entry in text.get("replicas", []):
        for one in _called(found, entry["name"]):
            if "replicas" in one["spec"]:
                one["spec"]["replicas"] = entry["count"]
    for entry in text.get("images", []):
        for container in _containers(found):
            if container["image"].partition(":")[0] == entry["name"]:
                container["image"] = f"{entry['name']}:{entry['newTag']}"
    for entry in text.get("labels", []):
        assert entry["includeSelectors"], "else it would have to be done otherwise"
        for one in found:
            _label(one, entry["pairs"])
    if "namespace" in text:
        for one in found:
            if one["kind"] not in _CLUSTER_WIDE:
                one["metadata"]["namespace"] = text["namespace"]
    return found


def _generate(found: list[Document], kind: str, entry: dict[str, Any]) -> None:
    said = dict(literal.split("=", 1) for literal in entry["literals"])
    data = {name: _encoded(value) if kind == "Secret" else value for name, value in said.items()}
    if entry.get("behavior") == "merge":
        (there,) = [one for one in found if one["kind"] == kind and one["metadata"]["name"] == entry["name"]]
        there["data"] |= data
        return
    made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": entry["name"]}, "data": data}
    found.append({**made, "type": "Opaque"} if kind == "Secret" else made)


def _encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _called(found: list[Document], name: str, kind: str | None = None) -> list[Document]:
    chosen = [one for one in found if one["metadata"]["name"] == name and kind in (None, one["kind"])]
    assert chosen, f"there is no {kind} {name}"
    return chosen


def _patch(found: list[Document], entry: dict[str, Any]) -> None:
    (one,) = _called(found, entry["target"]["name"], entry["target"]["kind"])
    changes = yaml.safe_load(entry["patch"])
    if isinstance(changes, dict):
        assert changes["$patch"] == "delete"
        found.remove(one)
        return
    for change in changes:
        assert change["op"] == "replace"
        *way, last = change["path"].strip("/").split("/")
        at: Any = one
        for step in way:
            at = at[int(step) if isinstance(at, list) else step]
        assert last in at, f"nothing is at {change['path']}"
        at[last] = change["value"]


def _label(one: Document, pairs: dict[str, str]) -> None:
    one["metadata"].setdefault("labels", {}).update(pairs)
    spec = one.get("spec", {})
    if one["kind"] == "Service":
        spec["selector"].update(pairs)
    elif "selector" in spec and "matchLabels" in spec["selector"]:
        spec["selector"]["matchLabels"].update(pairs)
    if "template" in spec:
        spec["template"]["metadata"]["labels"].update(pairs)
        for constraint in spec["template"]["spec"].get("topologySpreadConstraints", []):
            constraint["labelSelector"]["matchLabels"].update(pairs)
    for claim in spec.get("volumeClaimTemplates", []):
        claim["metadata"].setdefault("labels", {}).update(pairs)


def _containers(found: list[Document]) -> Iterator[Document]:
    for one in found:
        if "template" in one.get("spec", {}):
            yield from one["spec"]["template"]["spec"]["containers"]

"""What is in `deploy/` fits together, fits Kubernetes, and fits the program: names, ports, settings, commands, probes, rights."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Mapping

import kubernetes_validate
import pytest
import yaml

from menuwatch import __version__
from menuwatch.api.app import bare_app
from menuwatch.cli.main import COMMANDS
from menuwatch.config.settings import Settings, variables
from menuwatch.db.pool import Pool
from menuwatch.queue.model import NewTask, Role
from menuwatch.workers.names import pod_name
from tests.deploy.kustomize import DEPLOY, Document, built, by_hand, by_kubectl
from tests.workers.waiting import put

FOLDERS = ("base", "overlays/local", "overlays/object-storage", "overlays/production")
VERSIONS = ("1.32", "1.37")
OURS = {name for name, _, _ in variables()}
KINDS_OF_PODS = ("Deployment", "StatefulSet", "Job")


def one(documents: list[Document], kind: str, name: str) -> Document:
    (found,) = [each for each in documents if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def pods(documents: list[Document]) -> list[tuple[str, Document]]:
    return [
        (each["metadata"]["name"], each["spec"]["template"]["spec"])
        for each in documents
        if each["kind"] in KINDS_OF_PODS
    ]


def container(documents: list[Document], kind: str, name: str) -> Document:
    (found,) = one(documents, kind, name)["spec"]["template"]["spec"]["containers"]
    return found


def environment(documents: list[Document], found: Document) -> dict[str, str]:
    """What that container is given, a reference to itself as `$(its path)`; of a Secret that is not here, the names that one needs."""
    said: dict[str, str] = {}
    for source in found.get("envFrom", []):
        if "configMapRef" in source:
            said |= one(documents, "ConfigMap", source["configMapRef"]["name"])["data"]
        else:
            assert source == {"secretRef": {"name": "menuwatch"}}
            said["DATABASE_URL"] = "postgresql://a@b/c"
    for entry in found.get("env", []):
        said[entry["name"]] = (
            entry["value"] if "value" in entry else "$(" + entry["valueFrom"]["fieldRef"]["fieldPath"] + ")"
        )
    return said


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_document_is_one_of_kubernetes(folder: str, version: str) -> None:
    for document in built(folder):
        kubernetes_validate.validate(document, version, strict=True)


def test_a_field_that_does_not_exist_would_be_seen() -> None:
    document = one(built("base"), "StatefulSet", "scraper-worker")
    document["spec"]["template"]["spec"]["terminationGraceSeconds"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, VERSIONS[-1], strict=True)


@pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not on this machine; the other tests build by hand"
)
@pytest.mark.parametrize("folder", FOLDERS)
def test_building_by_hand_is_what_kubectl_does(folder: str) -> None:
    def sorted_(documents: list[Document]) -> list[Document]:
        return sorted(documents, key=lambda each: (each["kind"], each["metadata"]["name"]))

    assert sorted_(by_hand(DEPLOY / folder)) == sorted_(by_kubectl(folder))


def test_every_file_is_used() -> None:
    there = {path for path in DEPLOY.rglob("*.yaml") if path.name not in ("kustomization.yaml", "compose.yaml")}
    named = {
        (path.parent / name).resolve()
        for path in DEPLOY.rglob("kustomization.yaml")
        for name in yaml.safe_load(path.read_text(encoding="utf-8"))["resources"]
    }
    assert {path for path in named if path.is_file()} == there


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_and_selectors_lead_somewhere(folder: str) -> None:
    documents = built(folder)
    names = [(each["kind"], each["metadata"]["name"]) for each in documents]
    assert len(names) == len(set(names))
    assert {each["metadata"].get("namespace") for each in documents if each["kind"] != "Namespace"} == {
        "dispensary-scraper"
    }
    templates = [
        (each["spec"]["template"]["metadata"]["labels"], each["spec"]["template"]["spec"])
        for each in documents
        if each["kind"] in KINDS_OF_PODS
    ]

    def chosen(selector: Mapping[str, str]) -> Document:
        (found,) = [spec for labels, spec in templates if selector.items() <= labels.items()]
        return found

    for each in documents:
        spec = each.get("spec", {})
        if each["kind"] in ("Deployment", "StatefulSet"):
            assert chosen(spec["selector"]["matchLabels"]) is spec["template"]["spec"]
        if each["kind"] == "StatefulSet":
            assert one(documents, "Service", spec["serviceName"])
        if each["kind"] == "PodDisruptionBudget":
            assert chosen(spec["selector"]["matchLabels"])
        if each["kind"] == "Service":
            (listens,) = chosen(spec["selector"])["containers"]
            ports = {port["name"]: port["containerPort"] for port in listens["ports"]}
            assert {port["targetPort"] for port in spec["ports"]} <= set(ports)
        if each["kind"] == "Ingress":
            for rule in spec["rules"]:
                for path in rule["http"]["paths"]:
                    to = path["backend"]["service"]
                    service = one(documents, "Service", to["name"])
                    assert to["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}
    for _, spec in pods(documents):
        for volume in spec.get("volumes", []):
            if "persistentVolumeClaim" in volume:
                assert one(documents, "PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"])
        claims = [
            claim["metadata"]["name"]
            for each in documents
            for claim in each.get("spec", {}).get("volumeClaimTemplates", [])
        ]
        for running in spec["containers"]:
            assert {mount["name"] for mount in running["volumeMounts"]} <= {
                *(volume["name"] for volume in spec.get("volumes", [])), *claims,
            }  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS)
def test_settings_commands_and_images_are_ours(folder: str) -> None:
    documents = built(folder)
    ours = [(name, spec["containers"][0]) for name, spec in pods(documents) if name != "menuwatch-postgres"]
    assert {name for name, _ in ours} == {"menuwatch-migrate", "menuwatch-server", "scraper-worker"}
    for name, found in ours:
        said = environment(documents, found)
        assert set(said) <= OURS, f"{name}: {set(said) - OURS} are no settings"
        settings = Settings.from_env(said)
        assert settings.k8s_namespace == "dispensary-scraper"
        assert one(documents, "StatefulSet", settings.k8s_worker_statefulset)
        assert found["image"] == f"menuwatch:{__version__}"
        (command,) = found["args"]
        assert command in COMMANDS
        if name != "menuwatch-migrate":
            storage = {mount["mountPath"] for mount in found["volumeMounts"]}
            assert str(settings.storage) in storage


def test_the_server_is_reached_and_probed_where_it_answers() -> None:
    documents = built("base")
    found = container(documents, "Deployment", "menuwatch-server")
    assert one(documents, "Deployment", "menuwatch-server")["spec"]["replicas"] == 2
    settings = Settings.from_env(environment(documents, found))
    assert (settings.scaler, settings.host) == ("kubernetes", "0.0.0.0")
    assert found["ports"] == [{"name": "http", "containerPort": settings.port}]
    paths = set(bare_app().openapi()["paths"])
    probes = {kind: found[kind]["httpGet"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe["port"] for probe in probes.values()} == {"http"}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz",
    }  # fmt: skip
    assert {"/healthz", "/readyz"} <= paths


def test_workers_are_five_pods_of_five_with_names() -> None:
    documents = built("base")
    spec = one(documents, "StatefulSet", "scraper-worker")["spec"]
    found = container(documents, "StatefulSet", "scraper-worker")
    said = environment(documents, found)
    settings = Settings.from_env({**said, "POD_NAME": "scraper-worker-2"})
    assert (spec["replicas"], settings.workers_per_pod) == (5, 5)
    assert (settings.workers_min, settings.workers_max) == (5, 15)
    assert said["POD_NAME"] == "$(metadata.name)"
    assert pod_name("x", name=settings.pod_name) == "Kryll"
    assert [port["containerPort"] for port in found["ports"]] == [settings.metrics_port + place for place in range(5)]
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] >= settings.shutdown_grace_seconds + 30
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        _, flag, module, what = found[kind]["exec"]["command"]
        assert (flag, what) == ("-m", "worker")
        assert importlib.util.find_spec(module) is not None


@pytest.mark.parametrize("folder", FOLDERS)
def test_nobody_has_more_rights_than_needed(folder: str) -> None:
    documents = built(folder)
    account = one(documents, "ServiceAccount", "menuwatch-server")["metadata"]
    binding = one(documents, "RoleBinding", "menuwatch-scaler")
    assert binding["roleRef"]["name"] == one(documents, "Role", "menuwatch-scaler")["metadata"]["name"]
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    ]
    # That these are what the program asks for, and enough, is tests/scaling/test_kubernetes.py's: it has them from the same file.
    assert [(rule["resources"], rule["verbs"]) for rule in one(documents, "Role", "menuwatch-scaler")["rules"]] == [
        (["statefulsets"], ["get"]), (["statefulsets/scale"], ["patch"]),
    ]  # fmt: skip
    assert not [each for each in documents if each["kind"].startswith("ClusterRole")]
    for name, spec in pods(documents):
        assert spec["automountServiceAccountToken"] is (name == "menuwatch-server"), name
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for found in spec["containers"]:
            assert found["securityContext"]["allowPrivilegeEscalation"] is False
            assert found["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert found["resources"]["requests"].keys() == {"cpu", "memory"}
            assert name == "menuwatch-postgres" or found["securityContext"]["readOnlyRootFilesystem"] is True


def test_keda_has_as_many_pods_as_may_be_ordered() -> None:
    documents = built("overlays/production", "components/keda")
    spec = one(documents, "ScaledObject", "scraper-worker")["spec"]
    target = spec["scaleTargetRef"]
    assert one(documents, target["kind"], target["name"])["apiVersion"] == target["apiVersion"]
    settings = Settings.from_env(one(documents, "ConfigMap", "menuwatch")["data"])
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (settings.workers_min, settings.workers_max)
    (trigger,) = spec["triggers"]
    assert trigger["type"] == "postgresql"
    assert trigger["metadata"]["connectionFromEnv"] in OURS
    assert all(isinstance(value, str) for value in trigger["metadata"].values())


async def test_its_query_counts_ready_tasks(pool: Pool) -> None:
    text = yaml.safe_load((DEPLOY / "components/keda/scaledobject.yaml").read_text(encoding="utf-8"))
    await put(pool, NewTask(role=Role.STORE_DISCOVERY), NewTask(role=Role.ANALYTICS_REFRESH))
    async with pool.connection() as conn:
        assert await (await conn.execute(text["spec"]["triggers"][0]["metadata"]["query"])).fetchone() == (2,)


def test_with_object_storage_no_pod_has_a_shared_volume() -> None:
    documents = built("overlays/object-storage")
    assert "PersistentVolumeClaim" not in {each["kind"] for each in documents}
    for name, spec in pods(documents):
        assert all("emptyDir" in volume for volume in spec["volumes"]), name
        (found,) = spec["containers"]
        settings = Settings.from_env(environment(documents, found))
        assert (settings.storage_driver, settings.s3_bucket) == ("s3", "menuwatch")
    # The other overlays share theirs, so a volume would be seen.
    assert "PersistentVolumeClaim" in {each["kind"] for each in built("overlays/production")}


def locked(path: str) -> dict[str, str]:
    text = (DEPLOY.parent / path).read_text(encoding="utf-8")
    assert "--index-url" not in text
    return dict(re.findall(r"^([a-zA-Z0-9_.-]+)==(\S+)", text, re.MULTILINE))


def test_the_image_has_the_versions_that_are_tested_and_no_tools_of_ours() -> None:
    tested, runs = locked("requirements.lock"), locked("deploy/requirements.lock")
    assert runs.items() <= tested.items()
    assert locked("deploy/requirements-build.lock").items() <= tested.items()
    project = (DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.findall(
        r'^  "([a-zA-Z0-9_.-]+)', project.partition("dependencies = [")[2].partition("\n]")[0], re.MULTILINE
    )
    assert len(needed) > 20
    assert {name.lower().replace("_", "-") for name in needed} <= {name.replace("_", "-") for name in runs}
    assert "ip2location" in runs, "an extra elsewhere: nothing can be installed into the image"
    assert not runs.keys() & {"pytest", "mypy", "ruff", "playwright", "kubernetes-validate"}


def test_the_image() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n", " ", text).splitlines()
    (_, last) = [number for number, line in enumerate(lines) if line.startswith("FROM ")]
    assert "USER 10001:10001" in lines[last:]
    assert all(
        "--require-hashes" in part or "--no-deps" in part
        for line in lines
        for part in re.findall(r"pip install[^&]*", line)
    )
    sources = {
        name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]
    }
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == sources
    assert all((DEPLOY.parent / name).exists() for name in sources)
    (check,) = re.findall(r'HEALTHCHECK .* CMD \["python", "-m", "([a-z.]+)", "server"\]', text)
    assert importlib.util.find_spec(check) is not None
    (command,) = re.findall(r'^CMD \["([a-z]+)"\]', text, re.MULTILINE)
    assert command in COMMANDS


def test_compose() -> None:
    said = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    services = said["services"]
    assert services.keys() == {"db", "migrate", "server", "workers"}
    for name in ("migrate", "server", "workers"):
        found = services[name]
        (command,) = found["command"]
        assert command in COMMANDS
        assert set(found["environment"]) <= OURS
        assert set(found["depends_on"]) <= set(services)
    workers = Settings.from_env(
        {**services["workers"]["environment"], "DATABASE_URL": "postgresql://a@b/c", "SECRET_KEY": ""}
    )
    assert workers.metrics_port
    assert int(services["workers"]["stop_grace_period"].removesuffix("s")) >= workers.shutdown_grace_seconds + 30
    assert services["server"]["ports"] == [f"127.0.0.1:{Settings().port}:{Settings().port}"]
    assert {volume.partition(":")[0] for each in services.values() for volume in each.get("volumes", [])} == set(
        said["volumes"]
    )

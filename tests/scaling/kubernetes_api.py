"""A small API server of Kubernetes on a TLS socket: it keeps one StatefulSet, and is as strict as the real one about who asks what.

It knows a token and the rules of a role, the paths of apps/v1, which verbs and content types there are, versions of what it keeps and
trials without effect. Pods come and go when a test says so (`settle`), as a controller would have them.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import trustme
import yaml

TOKEN = "a-token-of-the-tests"
NAMESPACE, NAME = "dispensary-scraper", "scraper-worker"
WHOLE = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{NAME}"
VERBS = {"GET": "get", "PATCH": "patch", "PUT": "update", "DELETE": "delete", "POST": "create"}
FREE = [{"apiGroups": ["apps"], "resources": ["statefulsets", "statefulsets/scale"], "verbs": ["get", "patch"]}]


@dataclass
class ApiServer:
    """What it keeps, and what it was asked: (verb, path, query), each with its answer's status."""

    url: str = ""
    rules: Sequence[Mapping[str, Any]] = field(default_factory=lambda: FREE)
    wanted: int = 8
    pods: int = 8
    ready: int = 8
    version: int = 100
    asked: list[tuple[str, str, str, int]] = field(default_factory=list)
    before_patch: Callable[[], None] = lambda: None
    broken: int | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def settle(self) -> None:
        """What a controller does in time: as many pods as are wanted, and all of them ready."""
        with self.lock:
            self.pods = self.ready = self.wanted
            self.version += 1

    def scale(self, wanted: int) -> None:
        """Scale as another client (kubectl) does."""
        with self.lock:
            self.wanted = wanted
            self.version += 1

    def allows(self, verb: str, resource: str) -> bool:
        return any(
            "apps" in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"]
            and NAME in rule.get("resourceNames", [NAME])
            for rule in self.rules
        )  # fmt: skip

    def patches(self) -> list[tuple[str, int]]:
        """Queries and statuses of the patches."""
        return [(query, status) for verb, _, query, status in self.asked if verb == "PATCH"]

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        parts = urlsplit(target)
        with self.lock:
            status, answer = self._answer(method, parts.path, parse_qs(parts.query), headers, body)
            self.asked.append((method, parts.path, parts.query, status))
        return status, answer

    def _answer(
        self, method: str, path: str, query: Mapping[str, list[str]], headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, Any]]:
        if self.broken is not None:
            return refused(self.broken, "etcdserver: request timed out")
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return refused(401, "Unauthorized")
        resource = {WHOLE: "statefulsets", f"{WHOLE}/scale": "statefulsets/scale"}.get(path)
        if resource is None:
            return refused(404, "the server could not find the requested resource")
        if not self.allows(VERBS[method], resource):
            return refused(
                403, f'statefulsets.apps "{NAME}" is forbidden: User cannot {VERBS[method]} resource "{resource}"'
            )
        if method == "GET" and resource == "statefulsets":
            return 200, self.whole()
        if method == "PATCH" and resource == "statefulsets/scale":
            if headers.get("Content-Type") != "application/merge-patch+json":
                return refused(415, "the body of the request was in an unknown format")
            self.before_patch()
            return self._patch(json.loads(body), trial=query.get("dryRun") == ["All"])
        return refused(405, "the server does not allow this method on the requested resource")

    def _patch(self, patch: dict[str, Any], *, trial: bool) -> tuple[int, dict[str, Any]]:
        assert set(patch) <= {"spec", "metadata"}, patch
        assert set(patch["spec"]) == {"replicas"}, patch
        version = patch.get("metadata", {}).get("resourceVersion", str(self.version))
        if version != str(self.version):
            return refused(409, "the object has been modified; please apply your changes to the latest version")
        wanted = patch["spec"]["replicas"]
        if not isinstance(wanted, int) or wanted < 0:
            return refused(422, "spec.replicas: Invalid value")
        if not trial:
            self.wanted, self.version = wanted, self.version + 1
        meta = {"name": NAME, "namespace": NAMESPACE, "resourceVersion": str(self.version)}
        return 200, {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": {"replicas": wanted},
                     "status": {"replicas": self.pods}}  # fmt: skip

    def whole(self) -> dict[str, Any]:
        labels = {"app": NAME}
        return {
            "kind": "StatefulSet", "apiVersion": "apps/v1",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "resourceVersion": str(self.version)},
            "spec": {"replicas": self.wanted, "serviceName": NAME, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "worker", "image": "x"}]}}},
            "status": {"replicas": self.pods, "readyReplicas": self.ready},
        }  # fmt: skip


def refused(code: int, message: str) -> tuple[int, dict[str, Any]]:
    return code, {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code,
    }


@contextmanager
def serving(folder: Path) -> Iterator[tuple[ApiServer, Path]]:
    """The server, and a service account's folder for it as a pod has one; the kubeconfig beside it says the same."""
    kept = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = kept.answer(self.command, self.path, self.headers, body)
            said = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_PATCH = do_PUT = do_POST = do_DELETE = _any  # noqa: N815 - http.server's names

        def log_message(self, *args: object) -> None:
            pass

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    kept.url = f"https://127.0.0.1:{server.server_port}"
    account = folder / "account"
    account.mkdir()
    (account / "token").write_text(TOKEN)
    (account / "namespace").write_text(NAMESPACE)
    authority.cert_pem.write_to_path(str(account / "ca.crt"))
    (folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig(kept.url, account / "ca.crt")))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield kept, account
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def kubeconfig(url: str, authority: Path, *, token: str = TOKEN) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "tests",
        "clusters": [{"name": "tests", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": "tests", "user": {"token": token}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
    }  # fmt: skip

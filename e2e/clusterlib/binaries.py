# SPDX-License-Identifier: Apache-2.0
"""The Go programs of the cluster and of its clients, built once and kept outside the clone by the hash of what they are
made of."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile

from . import paths
from .progress import Failure, say, step
from .shell import exclusive, run, tail

MODULE = paths.E2E / "controlplane"
CLIENTS = paths.E2E / "clients"
HELM = "helm.sh/helm/v3"
OLDEST_GO = (1, 25)
# What the one binary `kube` runs as; kubectl is among them so that no system needs a recent package of it.
KUBE_PROGRAMS = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"]
PROGRAMS = ["kube", "etcd", "coredns", "pause"]


def _go_version():
    try:
        version = run("go", "env", "GOVERSION").strip()
    except Failure:
        version = "none"
    found = re.match(r"go(\d+)\.(\d+)", version)
    if not found or (int(found[1]), int(found[2])) < OLDEST_GO:
        wanted = ".".join(map(str, OLDEST_GO))
        raise Failure(f"the cluster's control plane needs Go {wanted} or later in PATH; found: {version}")
    return version


def _required(module, path):
    """The version of a module in a go.mod, with its major and minor number."""
    return re.search(re.escape(path) + r" (v(\d+)\.(\d+)\.\d+)", (module / "go.mod").read_text())


def _ldflags(stamps):
    """Strips, and stamps versions: without them every Kubernetes program calls itself v0.0.0-master."""
    return " ".join(["-s", "-w", *[f"-X {name}={value}" for name, value in stamps.items()]])


def _kube_ldflags():
    version = _required(MODULE, "k8s.io/kubernetes")
    values = {"gitVersion": version[1], "gitMajor": version[2], "gitMinor": version[3], "gitTreeState": "clean"}
    return _ldflags({f"{package}.{key}": value
                     for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
                     for key, value in values.items()})


def _client_ldflags():
    """helm asks no server when it renders: it takes the Kubernetes that it was built for."""
    kubernetes = _required(MODULE, "k8s.io/kubernetes")
    return _ldflags({f"{HELM}/internal/version.version": _required(CLIENTS, HELM)[1],
                     f"{HELM}/pkg/chartutil.k8sVersionMajor": kubernetes[2],
                     f"{HELM}/pkg/chartutil.k8sVersionMinor": kubernetes[3]})


def _inputs_hash(module, go_version, ldflags):
    digest = hashlib.sha256()
    for part in (go_version, ldflags):
        digest.update(part.encode() + b"\0")
    sources = sorted((module / "cmd").rglob("*.go"))
    for path in [module / "go.mod", module / "go.sum", *sources]:
        digest.update(str(path.relative_to(module)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def ensure():
    """The folder with the programs of the cluster; builds them when their inputs have changed (ten minutes on two idle
    cores)."""
    return _ensure(MODULE, _kube_ldflags(), ["./cmd/..."], KUBE_PROGRAMS, "Kubernetes, etcd and CoreDNS (ten minutes the first time)")


def ensure_clients():
    """The folder with what people use with a cluster: helm, and `health`, which judges objects as GitOps tools do."""
    return _ensure(CLIENTS, _client_ldflags(), ["./cmd/...", f"{HELM}/cmd/helm"], [], "helm (minutes the first time)")


def _ensure(module, ldflags, packages, kube_programs, what):
    go_version = _go_version()
    folder = paths.cache_dir() / f"{module.name}-{_inputs_hash(module, go_version, ldflags)}"
    if folder.is_dir():
        return folder
    with exclusive(folder.with_suffix(".lock"), f"building {module.name}"):
        if not folder.is_dir():
            with step(f"building {what} into {folder}"):
                _build(folder, module, ldflags, packages, kube_programs)
    return folder


def _build(folder, module, ldflags, packages, kube_programs):
    scratch = tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent)
    try:
        built = subprocess.run(
            ["go", "build", "-trimpath", "-ldflags", ldflags, "-o", scratch + "/", *packages], cwd=module,
            env={**os.environ, "CGO_ENABLED": "0"}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if built.returncode != 0:
            raise Failure(f"go build in {module} failed:\n{tail(built.stdout)}")
        for program in kube_programs:
            os.symlink("kube", os.path.join(scratch, program))
        os.chmod(scratch, 0o755)
        os.rename(scratch, folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    for old in folder.parent.glob(f"{module.name}-*"):
        if old.is_dir() and old != folder and old.name.count(".") == 0:
            say(f"   an older build is in {old}: delete it when no other clone uses it")

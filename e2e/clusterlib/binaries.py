# SPDX-License-Identifier: Apache-2.0
"""The Go programs of the cluster, built once and kept outside the clone by the hash of what they are made of."""

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


def _ldflags():
    """Strips, and stamps the version: without it every Kubernetes program calls itself v0.0.0-master."""
    version = re.search(r"k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)", (MODULE / "go.mod").read_text())
    values = {"gitVersion": version[1], "gitMajor": version[2], "gitMinor": version[3], "gitTreeState": "clean"}
    stamps = [f"-X {package}.{key}={value}"
              for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
              for key, value in values.items()]
    return " ".join(["-s", "-w", *stamps])


def _inputs_hash(go_version):
    digest = hashlib.sha256()
    for part in (go_version, _ldflags()):
        digest.update(part.encode() + b"\0")
    sources = sorted((MODULE / "cmd").rglob("*.go"))
    for path in [MODULE / "go.mod", MODULE / "go.sum", *sources]:
        digest.update(str(path.relative_to(MODULE)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def ensure():
    """The folder with all programs; builds them when their inputs have changed (ten minutes on two idle cores)."""
    go_version = _go_version()
    folder = paths.cache_dir() / f"controlplane-{_inputs_hash(go_version)}"
    if folder.is_dir():
        return folder
    with exclusive(folder.with_suffix(".lock"), "building the control plane"):
        if not folder.is_dir():
            _build(folder)
    return folder


def _build(folder):
    scratch = tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent)
    try:
        with step(f"building Kubernetes, etcd and CoreDNS into {folder} (ten minutes the first time)"):
            built = subprocess.run(
                ["go", "build", "-trimpath", "-ldflags", _ldflags(), "-o", scratch + "/", "./cmd/..."], cwd=MODULE,
                env={**os.environ, "CGO_ENABLED": "0"}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if built.returncode != 0:
            raise Failure(f"go build in {MODULE} failed:\n{tail(built.stdout)}")
        for program in KUBE_PROGRAMS:
            os.symlink("kube", os.path.join(scratch, program))
        os.chmod(scratch, 0o755)
        os.rename(scratch, folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    for old in folder.parent.glob("controlplane-*"):
        if old.is_dir() and old != folder and old.name.count(".") == 0:
            say(f"   an older build is in {old}: delete it when no other clone uses it")

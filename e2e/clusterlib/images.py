# SPDX-License-Identifier: Apache-2.0
"""Container images, built by buildah without any registry and imported into the nodes' containerds.

Layers and archives are kept outside the clone; an image whose inputs have not changed is not built again.
"""

import hashlib
import os
import platform
import re
import shutil
import tempfile
from pathlib import Path

from . import paths
from .progress import Failure, step
from .shell import exclusive, run

PAUSE_IMAGE = "localhost/flamefleet-pause:dev"
COREDNS_IMAGE = "localhost/flamefleet-coredns:dev"
BURN_IMAGE = "docker.io/library/flamefleet-burn:dev"
GOPPROF_IMAGE = "docker.io/library/flamefleet-gopprof:dev"
FLAMEFLEET_IMAGE = "docker.io/library/flamefleet:dev"

PROGRAMS = ["flamefleet-operator", "flamefleet-agent", "flamefleet-parse", "flamefleet-store"]
DOCKERFILE = paths.REPOSITORY / "Dockerfile"
BUILT_HERE = paths.REPOSITORY / "build" / "release" / "bin"
STAGING = paths.REPOSITORY / "build" / "image"  # what the Dockerfile's stage `prebuilt` copies
WORKLOADS = paths.E2E / "workloads"
NATIVE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]  # as Debian and images call it


def _hash(*files):
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def buildah(*argv, check=True):
    cache = paths.cache_dir()
    # overlay, as containerd here: with vfs each layer is a whole copy, and a rebuild takes half a minute, not seconds.
    return run("buildah", "--root", cache / "buildah", "--runroot", cache / "buildah-run", "--storage-driver",
               "overlay", *argv, check=check)


def building():
    """Held while images are built: one at a time."""
    return exclusive(paths.cache_dir() / "buildah.lock", "building images")


def _archive(image, key, build):
    """The archive of `image` for inputs that hash to `key`; calls `build` to make the image when there is none."""
    folder = paths.cache_dir() / "images"
    folder.mkdir(exist_ok=True)
    name = image.rpartition("/")[2].partition(":")[0]
    archive = folder / f"{name}-{key}.tar"
    with building():
        if archive.exists():
            return archive
        buildah("rm", "--all", check=False)  # what a build that was killed left
        with step(f"building the image {image}"):
            build()
            partial = archive.with_suffix(".partial")
            partial.unlink(missing_ok=True)
            buildah("push", image, f"docker-archive:{partial}:{image}")
            partial.rename(archive)
            buildah("rmi", "--prune", check=False)  # only to save space
        for old in folder.glob(f"{name}-*.tar"):
            if old != archive and re.fullmatch(re.escape(name) + r"-[0-9a-f]{16}\.tar", old.name):
                old.unlink()
    return archive


def _scratch_image(image, program):
    """An image of one static program."""
    def build():
        with tempfile.TemporaryDirectory() as context:
            shutil.copy2(program, context)
            (Path(context) / "Dockerfile").write_text(
                f'FROM scratch\nCOPY {program.name} /{program.name}\nENTRYPOINT ["/{program.name}"]\n')
            buildah("bud", "--isolation", "chroot", "--tag", image, context)
    return _archive(image, _hash(program), build)


def system_archives(binaries):
    """The images that the cluster itself needs."""
    return {PAUSE_IMAGE: _scratch_image(PAUSE_IMAGE, binaries / "pause"),
            COREDNS_IMAGE: _scratch_image(COREDNS_IMAGE, binaries / "coredns")}


def workload_archives():
    """The sample workloads: a C++ program that burns known shares, and a Go program with net/http/pprof."""
    out = paths.REPOSITORY / "build" / "workloads"
    out.mkdir(parents=True, exist_ok=True)
    burn, gopprof = out / "burn", out / "gopprof"
    run("g++", "-std=c++20", "-O1", "-fno-omit-frame-pointer", "-static", WORKLOADS / "burn.cc", "-o", burn)
    run("env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-o", gopprof, ".", cwd=WORKLOADS / "gopprof")
    return {BURN_IMAGE: _scratch_image(BURN_IMAGE, burn), GOPPROF_IMAGE: _scratch_image(GOPPROF_IMAGE, gopprof)}


def ensure_base(architecture=NATIVE):
    """Makes what our image starts from here, where there is no registry: a Debian of packages, once; returns its name. All its
    times are one, too: the same packages make the same bytes."""
    name = f"localhost/flamefleet-debian-{architecture}:12"
    with exclusive(paths.cache_dir() / f"base-{architecture}.lock", "making the base image"):
        if name in buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
            return name
        with step(f"making {name} from Debian packages"), tempfile.TemporaryDirectory() as context:
            run("mmdebstrap", "--variant=minbase", f"--architectures={architecture}", "--skip=check/qemu",
                *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "man", "locale")),
                "bookworm", f"{context}/root.tar", env={**os.environ, "SOURCE_DATE_EPOCH": "0"})
            (Path(context) / "Dockerfile").write_text('FROM scratch\nADD root.tar /\nCMD ["bash"]\n')
            buildah("bud", "--isolation", "chroot", "--arch", architecture, "--timestamp", "0", "--tag", name, context)
    return name


def stage_programs(built=BUILT_HERE, strip="strip"):
    """Puts programs, those of build/release, where the Dockerfile's stage `prebuilt` takes them: C++ is compiled once."""
    release = platform.freedesktop_os_release()
    if (release["ID"], release.get("VERSION_ID")) != ("debian", "12"):
        raise Failure("this machine does not run Debian 12: build the image with `docker build -t flamefleet:dev .`")
    STAGING.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        if not (built / program).exists():
            raise Failure(f"{built / program} does not exist: run `make build`")
        run(strip, "-o", STAGING / program, built / program)


def build_flamefleet(image, base, *, layers=True, architecture=NATIVE):
    """Builds our image of the staged programs. All its times are one, so what goes in decides what comes out."""
    version = run(paths.REPOSITORY / "tools" / "version").strip()
    buildah("bud", "--isolation", "chroot", "--layers" if layers else "--no-cache", "--pull-never", "--target", "prebuilt",
            "--timestamp", "0", "--arch", architecture, "--build-arg", f"BASE={base}",
            "--build-arg", f"VERSION={version}", "--tag", image, "--file", DOCKERFILE, paths.REPOSITORY)


def flamefleet_archive(image=FLAMEFLEET_IMAGE, built=BUILT_HERE):
    """Our image, with the programs of build/release or of another build."""
    packages = [paths.REPOSITORY / name for name in ("debian-packages.txt", "tools/debian-packages", "tools/debian-snapshot")]
    stage_programs(built)
    base = ensure_base()
    key = _hash(DOCKERFILE, *packages, *[STAGING / p for p in PROGRAMS])
    return {image: _archive(image, key, lambda: build_flamefleet(image, base))}


def load(node, state, archives):
    """Imports the archives that the node does not have yet; returns the names of the images that changed."""
    changed = []
    records = state / node.name / "images"
    records.mkdir(exist_ok=True)
    for image, archive in archives.items():
        record = records / image.replace("/", "_")
        if record.exists() and record.read_text() == archive.name:
            continue
        node.ctr("images", "import", archive)
        record.write_text(archive.name)
        changed.append(image)
    return changed

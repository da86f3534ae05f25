# SPDX-License-Identifier: Apache-2.0
# One image for the operator, the agent and the store: the container's command says which.
#   docker build -t flamefleet:dev .                     compiles everything
#   docker build --target prebuilt -t flamefleet:dev .   takes the stripped programs of build/image
#   docker buildx build --platform linux/amd64,linux/arm64 .   for both; the compiler runs on this machine's processor
# For a release, say what is built: --build-arg VERSION=$(tools/version) --build-arg REVISION=$(git rev-parse HEAD)
# and, for equal bytes, --timestamp $(git log -1 --format=%ct) (buildah, podman).

# debian:bookworm-20260824-slim, for both processors. The base says of which day its packages are, and all others are taken as
# they were on that day (tools/debian-snapshot). From another base: --build-arg BASE=...
ARG BASE=docker.io/library/debian@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171

FROM ${BASE} AS runtime
COPY debian-packages.txt /tmp/packages/
COPY tools/debian-packages tools/debian-snapshot /tmp/packages/tools/
# What is removed at the end says when the image was built, and is of no use in it.
RUN /tmp/packages/tools/debian-snapshot && apt-get update -q && \
    /tmp/packages/tools/debian-packages run | xargs apt-get install -qy --no-install-recommends && \
    rm -rf /tmp/packages /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache \
           /var/lib/dpkg/*-old /var/log/*
# The agent needs root and says so in its DaemonSet; operator and store run as any user.
USER 65532:65532
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title=flamefleet \
      org.opencontainers.image.description="Operator, agent and store of Flamefleet, which runs a fleet of profilers" \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.revision=${REVISION}

FROM runtime AS prebuilt
COPY build/image/ /usr/bin/

FROM --platform=${BUILDPLATFORM} ${BASE} AS build
ARG TARGETARCH
COPY debian-packages.txt /src/
COPY tools/debian-packages tools/debian-snapshot /src/tools/
RUN /src/tools/debian-snapshot && apt-get update -q && \
    /src/tools/debian-packages run build arm64 | xargs apt-get install -qy --no-install-recommends
COPY . /src
# Compiled for another processor by the preset of its name, else by `release`.
RUN cd /src && preset=release && if [ "${TARGETARCH:-amd64}" != "$(dpkg --print-architecture)" ]; then \
      preset=$TARGETARCH && tools/arm64-sysroot build/arm64-sysroot $(find /etc/apt/sources.list.d -name debian.sources); fi && \
    cmake --preset $preset -DFF_TESTS=OFF && mkdir image && \
    cmake --build --preset $preset --target flamefleet-operator flamefleet-agent flamefleet-parse flamefleet-store && \
    for program in build/$preset/bin/flamefleet-*; do llvm-strip -o image/$(basename $program) $program; done

FROM runtime
COPY --from=build /src/image/ /usr/bin/

# SPDX-License-Identifier: Apache-2.0
# One image for the operator, the agent and the store: the container's command says which.
#   docker build -t flamefleet:dev .                     compiles everything
#   docker build --target prebuilt -t flamefleet:dev .   takes the stripped programs of build/image

FROM docker.io/library/debian:12-slim AS runtime
COPY debian-packages.txt /tmp/packages/
COPY tools/debian-packages /tmp/packages/tools/
RUN apt-get update -q && /tmp/packages/tools/debian-packages run | xargs apt-get install -qy --no-install-recommends && \
    rm -rf /tmp/packages /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
# The agent needs root and says so in its DaemonSet.
USER 65532:65532

FROM runtime AS prebuilt
COPY build/image/ /usr/bin/

FROM docker.io/library/debian:12-slim AS build
COPY debian-packages.txt /src/
COPY tools/debian-packages /src/tools/
RUN apt-get update -q && /src/tools/debian-packages run build | xargs apt-get install -qy --no-install-recommends
COPY . /src
RUN cd /src && cmake --preset release -DFF_TESTS=OFF && \
    cmake --build --preset release --target flamefleet-operator flamefleet-agent flamefleet-parse flamefleet-store && \
    strip build/release/bin/flamefleet-*

FROM runtime
COPY --from=build /src/build/release/bin/flamefleet-operator /src/build/release/bin/flamefleet-agent \
     /src/build/release/bin/flamefleet-parse /src/build/release/bin/flamefleet-store /usr/bin/

// SPDX-License-Identifier: Apache-2.0
// Which container, or which service of the host, a cgroup belongs to, from its path alone.
//
// Understood: kubelet's cgroupfs and systemd drivers with containerd, CRI-O and dockershim names,
// QoS classes or none, static pods, crun's and systemd's sub-cgroups of a container, kind, k3s,
// plain docker, podman.
//
// Thread: any. Bounds: linear in the length of the path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace flamefleet::agent {

constexpr size_t kContainerIdLength = 64;

// The ids (64 hexadecimal digits) of the containers that the cgroup is inside of, outermost first;
// empty for a cgroup of the host, and for a path whose outer part is missing, which does not begin
// with "/". A container that may make cgroups can forge inner ones: take the first id that is
// known.
//
// In a path with pods ("pod<uid>"), a container is what follows a pod. Else it is the last
// component that looks like one.
std::vector<std::string> ContainerIdsOfCgroup(std::string_view path);

// The UID of the outermost pod, as the API server writes it; "" when there is none. A static pod's
// is the hash of its manifest, which the API server does not know.
std::string PodUidOfCgroup(std::string_view path);

// True when the cgroup is of the host: below nothing of Kubernetes and in no container, whoever
// runs it. False as well for a path whose outer part is missing, which does not begin with "/": it
// may be deep inside of a pod.
bool IsHostCgroup(std::string_view path);

// The systemd service that a cgroup of the host is in ("kubelet.service"); "" when it is in none,
// as sessions of users. The outermost: whoever owns that may make inner ones of any name.
std::string ServiceOfCgroup(std::string_view path);

}  // namespace flamefleet::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/host/container_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flamefleet::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

#define ID_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD "pod6f2c6e1c-3a3b-4a5e-9d0e-8a4c1b2d3e4f"
#define POD_SYSTEMD "pod6f2c6e1c_3a3b_4a5e_9d0e_8a4c1b2d3e4f"
#define POD_STATIC "pod4f9f4a2a3b8c7d6e5f4a3b2c1d0e9f8a"

struct Vector {
  const char* path;
  const char* id;  // "" : of the host
};

TEST(ContainerId, IsFoundInThePathsThatRuntimesMake) {
  const Vector vectors[] = {
      // kubelet with the cgroupfs driver: burstable, best effort, guaranteed, static pod
      {"/kubepods/burstable/" POD "/" ID_A, ID_A},
      {"/kubepods/besteffort/" POD "/" ID_A, ID_A},
      {"/kubepods/" POD "/" ID_A, ID_A},
      {"/kubepods/burstable/" POD_STATIC "/" ID_A, ID_A},
      // kubelet with the systemd driver: containerd, CRI-O, docker
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD_SYSTEMD
       ".slice/cri-containerd-" ID_A ".scope",
       ID_A},
      {"/kubepods.slice/kubepods-" POD_SYSTEMD ".slice/crio-" ID_A ".scope", ID_A},
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-" POD_SYSTEMD
       ".slice/docker-" ID_A ".scope",
       ID_A},
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD_STATIC
       ".slice/cri-containerd-" ID_A ".scope",
       ID_A},
      // containerd with the cgroupfs driver under a kubelet with systemd's
      {"/system.slice/containerd.service/kubepods-burstable-" POD_SYSTEMD
       ".slice:cri-containerd:" ID_A,
       ID_A},
      {"/kubepods-burstable-" POD_SYSTEMD ".slice/kubepods-burstable-" POD_SYSTEMD
       ".slice:cri-containerd:" ID_A,
       ID_A},
      // cgroups inside a container: crun, systemd in a container, docker in a pod
      {"/kubepods.slice/kubepods-" POD_SYSTEMD ".slice/crio-" ID_A ".scope/container", ID_A},
      {"/kubepods/burstable/" POD "/" ID_A "/init.scope", ID_A},
      {"/kubepods/burstable/" POD "/" ID_A "/system.slice/nginx.service", ID_A},
      {"/kubepods/besteffort/" POD "/" ID_A "/docker/" ID_B, ID_A},
      // kind: a node that is a docker container
      {"/docker/" ID_B "/kubelet/kubepods/burstable/" POD "/" ID_A, ID_A},
      {"/system.slice/docker-" ID_B
       ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
       "kubelet-kubepods-burstable-" POD_SYSTEMD ".slice/cri-containerd-" ID_A ".scope",
       ID_A},
      // as seen from another cgroup namespace, and with the parents cut off
      {"/../cri-containerd-" ID_A ".scope", ID_A},
      {"/" ID_A, ID_A},
      // without Kubernetes: docker with both drivers, podman with and without root, containerd
      {"/docker/" ID_A, ID_A},
      {"/system.slice/docker-" ID_A ".scope", ID_A},
      {"/machine.slice/libpod-" ID_A ".scope", ID_A},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_A ".scope/container",
       ID_A},
      {"/k8s.io/" ID_A, ID_A},
      // not containers
      {"/", ""},
      {"", ""},
      {"/system.slice/sshd.service", ""},
      {"/user.slice/user-1000.slice/session-3.scope", ""},
      {"/kubepods/burstable/" POD, ""},
      {"/kubepods.slice/kubepods-" POD_SYSTEMD ".slice", ""},
      {"/kubepods.slice/kubepods-" POD_SYSTEMD ".slice/crio-conmon-" ID_A ".scope", ""},
      {"/machine.slice/libpod-conmon-" ID_A ".scope", ""},
      {"/docker/0123456789abcdef", ""},
      {"/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", ""},
      {"/podinfo/" ID_A "x", ""},
  };
  for (const Vector& vector : vectors) {
    const std::vector<std::string> ids = ContainerIdsOfCgroup(vector.path);
    EXPECT_EQ(ids.empty() ? "" : ids.front(), vector.id) << vector.path;
  }
}

TEST(ContainerId, OfNestedPodsComesOutermostFirst) {
  EXPECT_THAT(ContainerIdsOfCgroup("/kubepods/" POD "/" ID_A "/kubepods/" POD_STATIC "/" ID_B),
              ElementsAre(ID_A, ID_B));
}

// What is left may be of its container's making, which can name any other's.
TEST(ContainerId, IsNotTakenFromAPathWhoseOuterPartIsMissing) {
  EXPECT_THAT(ContainerIdsOfCgroup("kubepods/burstable/" POD "/" ID_A), IsEmpty());
  EXPECT_THAT(ContainerIdsOfCgroup("docker/" ID_A), IsEmpty());
}

TEST(ContainerId, PodUidIsThatOfTheApiServer) {
  constexpr char kUid[] = "6f2c6e1c-3a3b-4a5e-9d0e-8a4c1b2d3e4f";
  EXPECT_EQ(PodUidOfCgroup("/kubepods/burstable/pod6f2c6e1c-3a3b-4a5e-9d0e-8a4c1b2d3e4f/" ID_A),
            kUid);
  EXPECT_EQ(PodUidOfCgroup("/kubepods.slice/"
                           "kubepods-pod6f2c6e1c_3a3b_4a5e_9d0e_8a4c1b2d3e4f.slice/x/kubepods/"
                           "pod00000000-0000-0000-0000-000000000000/" ID_A),
            kUid);
  EXPECT_EQ(PodUidOfCgroup("/system.slice/podinfo.service"), "");
}

TEST(ContainerId, IsNotMadeOfHostileNames) {
  EXPECT_THAT(ContainerIdsOfCgroup(std::string(100'000, '/')), IsEmpty());
  EXPECT_THAT(ContainerIdsOfCgroup("/pod/pod-/-pod.slice/podpodpod"), IsEmpty());
  EXPECT_THAT(ContainerIdsOfCgroup("/.scope/-.scope/:/-"), IsEmpty());
}

TEST(HostCgroup, IsNothingOfKubernetesAndNoContainer) {
  const std::string id(64, 'a');
  for (const std::string path :
       {"/", "/init.scope", "/system.slice/kubelet.service", "/system.slice/containerd.service",
        "/user.slice/user-1000.slice/session-2.scope", "/machine.slice/vm.scope"}) {
    EXPECT_TRUE(IsHostCgroup(path)) << path;
  }
  for (const std::string& path :
       {std::string(), std::string("system.slice/kubelet.service"),  // its outer part is missing
        "/docker/" + id, "/system.slice/docker-" + id + ".scope",
        "/docker/" + id + "/system.slice/kubelet.service", std::string("/kubepods/besteffort"),
        std::string("/kubepods.slice/kubepods-besteffort.slice/x.service"),
        std::string("/kubepods/pod6f2c6e1c-3a3b-4a5e-9d0e-8a4c1b2d3e4f/crio-conmon"),
        "/kubepods/pod6f2c6e1c-3a3b-4a5e-9d0e-8a4c1b2d3e4f/" + id + "/kubelet.service"}) {
    EXPECT_FALSE(IsHostCgroup(path)) << path;
  }
}

TEST(ServiceOfCgroup, IsTheOutermostSystemdService) {
  EXPECT_EQ(ServiceOfCgroup("/system.slice/kubelet.service"), "kubelet.service");
  EXPECT_EQ(ServiceOfCgroup("/system.slice/system-getty.slice/getty@tty1.service"),
            "getty@tty1.service");
  EXPECT_EQ(
      ServiceOfCgroup("/user.slice/user-1000.slice/user@1000.service/app.slice/kubelet.service"),
      "user@1000.service");
  EXPECT_EQ(ServiceOfCgroup("/system.slice/systemd-udevd.service/udev"), "systemd-udevd.service");
  EXPECT_EQ(ServiceOfCgroup("/user.slice/user-0.slice/session-1.scope"), "");
  EXPECT_EQ(ServiceOfCgroup("/"), "");
  EXPECT_EQ(ServiceOfCgroup(""), "");
}

}  // namespace
}  // namespace flamefleet::agent

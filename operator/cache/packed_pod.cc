// SPDX-License-Identifier: Apache-2.0
#include "operator/cache/packed_pod.h"

#include "base/wire.h"

namespace flamefleet {
namespace {

// Whoever adds a field to one of these packs it below, then corrects the number.
static_assert(sizeof(api::ObjectMeta) == 152);
static_assert(sizeof(api::Pod) == 408);
static_assert(sizeof(api::Container) == 104);
static_assert(sizeof(api::ContainerPort) == 40);

constexpr uint64_t kContinues = 0x80;
constexpr int kBits = 7;

// Numbers and texts one after the other; the reader knows the order.
class Writer {
 public:
  void Number(uint64_t value) { PutVarint(value, &out_); }
  void Text(std::string_view text) {
    Number(text.size());
    out_ += text;
  }
  void Map(const api::StringMap& map) {
    for (const auto& [key, value] : map) {
      Text(key);
      Text(value);
    }
  }
  const std::string& out() const { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}
  bool done() const { return in_.empty(); }
  uint64_t Number() {
    uint64_t value = 0;
    for (int shift = 0;; shift += kBits) {
      const auto byte = static_cast<uint8_t>(in_.front());
      in_.remove_prefix(1);
      value |= (byte & (kContinues - 1)) << shift;
      if (byte < kContinues) return value;
    }
  }
  std::string_view Text() {
    const size_t size = Number();
    const std::string_view text = in_.substr(0, size);
    in_.remove_prefix(size);
    return text;
  }
  void Map(api::StringMap& map) {
    while (!done()) {
      const std::string_view key = Text();
      map.emplace_hint(map.end(), key, Text());
    }
  }

 private:
  std::string_view in_;
};

}  // namespace

std::string_view PackedPod::Name() const {
  return Reader(own).Text();
}

PackedPod Pack(const api::Pod& pod, TextPool& pool) {
  Writer workload;
  workload.Text(pod.workload_kind);
  workload.Text(pod.workload_name);
  Writer labels;
  labels.Map(pod.labels);
  Writer annotations;
  annotations.Map(pod.annotations);
  Writer containers;
  Writer own;
  own.Text(pod.meta.name);
  own.Text(pod.meta.uid);
  own.Text(pod.ip);
  for (const api::Container& container : pod.containers) {
    containers.Text(container.name);
    containers.Number(static_cast<uint64_t>(container.kind));
    containers.Number(container.ports.size());
    for (const api::ContainerPort& port : container.ports) {
      containers.Text(port.name);
      containers.Number(static_cast<uint32_t>(port.number));
    }
    own.Text(container.id);
    own.Number(container.running ? 1 : 0);
  }
  PackedPod packed;
  packed.ns = pool.Intern(pod.meta.ns);
  packed.node = pool.Intern(pod.node);
  packed.workload = pool.Intern(workload.out());
  packed.labels = pool.Intern(labels.out());
  packed.annotations = pool.Intern(annotations.out());
  packed.containers = pool.Intern(containers.out());
  packed.own = std::string(own.out());  // its size and no more
  packed.creation_ns = pod.meta.creation_ns;
  packed.generation = pod.meta.generation;
  packed.phase = pod.phase;
  packed.ready = pod.ready;
  packed.deleting = pod.meta.deleting;
  return packed;
}

api::Pod Unpack(const PackedPod& packed) {
  api::Pod pod;
  Reader own(packed.own);
  pod.meta.ns = packed.ns.view();
  pod.meta.name = own.Text();
  pod.meta.uid = own.Text();
  pod.meta.generation = packed.generation;
  pod.meta.creation_ns = packed.creation_ns;
  pod.meta.deleting = packed.deleting;
  pod.node = packed.node.view();
  pod.ip = own.Text();
  pod.ready = packed.ready;
  pod.phase = packed.phase;
  Reader workload(packed.workload.view());
  pod.workload_kind = workload.Text();
  pod.workload_name = workload.Text();
  Reader(packed.labels.view()).Map(pod.labels);
  Reader(packed.annotations.view()).Map(pod.annotations);
  for (Reader in(packed.containers.view()); !in.done();) {
    api::Container& container = pod.containers.emplace_back();
    container.name = in.Text();
    container.kind = static_cast<api::ContainerKind>(in.Number());
    container.ports.resize(in.Number());
    for (api::ContainerPort& port : container.ports) {
      port.name = in.Text();
      port.number = static_cast<int32_t>(in.Number());
    }
    container.id = own.Text();
    container.running = own.Number() != 0;
  }
  return pod;
}

}  // namespace flamefleet

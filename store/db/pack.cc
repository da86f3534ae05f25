// SPDX-License-Identifier: Apache-2.0
#include "store/db/pack.h"

#include <algorithm>
#include <numeric>

#include "base/pprof/wrapping_sum.h"
#include "base/wire.h"
#include "base/zstd.h"

namespace flamefleet::store {
namespace {

constexpr int kCompressionLevel = 6;
constexpr size_t kMaxWidth = 1 << 10;  // far more than a profile that is taken can have

uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

uint64_t Magnitude(int64_t value) {
  return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
}

// Of each sample type the greatest common divisor of all values: nanoseconds of CPU become counts.
// 1 where that is 0, or has no int64.
std::vector<int64_t> DivisorsOf(const Pack& pack) {
  std::vector<int64_t> divisors;
  for (size_t type = 0; type < pack.width; ++type) {
    uint64_t divisor = 0;
    for (const PackedProfile& profile : pack.profiles) {
      const size_t count = profile.stacks.size();
      for (size_t i = 0; i < count && divisor != 1; ++i) {
        divisor = std::gcd(divisor, Magnitude(profile.values[type * count + i]));
      }
    }
    divisors.push_back(divisor == 0 || divisor > INT64_MAX ? 1 : static_cast<int64_t>(divisor));
  }
  return divisors;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint64_t Varint() {
    uint64_t value = 0;
    for (size_t i = 0; i < rest_.size() && i < kMaxVarintBytes; ++i) {
      const auto byte = static_cast<uint8_t>(rest_[i]);
      value |= static_cast<uint64_t>(byte & 0x7f) << (kVarintBits * i);
      if (byte >= 0x80) continue;
      rest_.remove_prefix(i + 1);
      return value;
    }
    return Damaged();
  }

  // A number of things that take at least a byte each.
  size_t Count() {
    const uint64_t count = Varint();
    return count <= rest_.size() ? static_cast<size_t>(count) : Damaged();
  }

  std::string Bytes() {
    const size_t size = Count();
    std::string bytes(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return bytes;
  }

  bool ok() const { return !damaged_; }
  bool AtEnd() const { return rest_.empty(); }

 private:
  uint64_t Damaged() {
    damaged_ = true;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool damaged_ = false;
};

bool ReadStacks(Reader* reader, PackedProfile* profile) {
  uint64_t stack = 0;
  for (size_t i = 0; i < profile->stacks.size() && reader->ok(); ++i) {
    const uint64_t step = reader->Varint();
    if (step > UINT32_MAX || (i > 0 && step == 0)) return false;
    stack += step;
    if (stack > UINT32_MAX) return false;
    profile->stacks[i] = static_cast<uint32_t>(stack);
  }
  return reader->ok();
}

bool ReadPack(Reader* reader, Pack* pack) {
  pack->width = reader->Count();
  if (pack->width > kMaxWidth) return false;
  const size_t heads = reader->Count();
  if (heads > kMaxPackProfiles) return false;
  pack->heads.resize(heads);
  for (std::string& head : pack->heads)
    head = reader->Bytes();
  const size_t profiles = reader->Count();
  if (profiles > kMaxPackProfiles) return false;
  pack->profiles.resize(profiles);
  int64_t time_ns = 0;
  size_t stacks = 0;
  for (PackedProfile& profile : pack->profiles) {
    time_ns = pprof::WrappingSum(time_ns, UnZigZag(reader->Varint()));
    profile.time_ns = time_ns;
    profile.has_time = reader->Varint() != 0;
    profile.duration_ns = UnZigZag(reader->Varint());
    const uint64_t head = reader->Varint();
    if (head >= pack->heads.size()) return false;
    profile.head = static_cast<uint32_t>(head);
    const size_t count = reader->Count();
    stacks += count;
    if (stacks > kMaxPackBytes) return false;
    profile.stacks.resize(count);
  }
  std::vector<int64_t> divisors(pack->width);
  for (int64_t& divisor : divisors)
    divisor = static_cast<int64_t>(reader->Varint());
  for (PackedProfile& profile : pack->profiles) {
    if (!ReadStacks(reader, &profile)) return false;
  }
  for (PackedProfile& profile : pack->profiles) {
    const size_t count = profile.stacks.size();
    profile.values.reserve(count * pack->width);
    for (const int64_t divisor : divisors) {
      for (size_t i = 0; i < count && reader->ok(); ++i) {
        profile.values.push_back(static_cast<int64_t>(
            static_cast<uint64_t>(UnZigZag(reader->Varint())) * static_cast<uint64_t>(divisor)));
      }
    }
    if (!reader->ok()) return false;
  }
  return reader->AtEnd();
}

}  // namespace

std::string EncodePack(const Pack& pack) {
  std::string out;
  PutVarint(pack.width, &out);
  PutVarint(pack.heads.size(), &out);
  for (const std::string& head : pack.heads) {
    PutVarint(head.size(), &out);
    out += head;
  }
  PutVarint(pack.profiles.size(), &out);
  int64_t last_ns = 0;
  for (const PackedProfile& profile : pack.profiles) {
    PutVarint(ZigZag(static_cast<int64_t>(static_cast<uint64_t>(profile.time_ns) -
                                          static_cast<uint64_t>(last_ns))),
              &out);
    last_ns = profile.time_ns;
    PutVarint(profile.has_time ? 1 : 0, &out);
    PutVarint(ZigZag(profile.duration_ns), &out);
    PutVarint(profile.head, &out);
    PutVarint(profile.stacks.size(), &out);
  }
  const std::vector<int64_t> divisors = DivisorsOf(pack);
  for (const int64_t divisor : divisors)
    PutVarint(static_cast<uint64_t>(divisor), &out);
  for (const PackedProfile& profile : pack.profiles) {
    uint32_t last = 0;
    for (const uint32_t stack : profile.stacks) {
      PutVarint(stack - last, &out);
      last = stack;
    }
  }
  for (const PackedProfile& profile : pack.profiles) {
    const size_t count = profile.stacks.size();
    for (size_t type = 0; type < pack.width; ++type) {
      for (size_t i = 0; i < count; ++i)
        PutVarint(ZigZag(profile.values[type * count + i] / divisors[type]), &out);
    }
  }
  return ZstdCompress(out, kCompressionLevel);
}

Result<Pack> DecodePack(std::string_view bytes) {
  FF_ASSIGN_OR_RETURN(const std::string plain, ZstdDecompress(bytes, kMaxPackBytes));
  Reader reader(plain);
  Pack pack;
  if (!ReadPack(&reader, &pack) || !reader.ok()) return DataLossError("pack: damaged");
  return pack;
}

std::string HeadOf(const pprof::Profile& profile) {
  pprof::Profile head;
  const auto copy = [&](uint32_t index) { return head.strings.Intern(profile.strings.Get(index)); };
  for (const pprof::ValueType& type : profile.sample_types)
    head.sample_types.push_back({copy(type.type), copy(type.unit)});
  head.period_type = {copy(profile.period_type.type), copy(profile.period_type.unit)};
  head.period = profile.period;
  head.drop_frames = copy(profile.drop_frames);
  head.keep_frames = copy(profile.keep_frames);
  head.default_sample_type = copy(profile.default_sample_type);
  head.doc_url = copy(profile.doc_url);
  for (const uint32_t comment : profile.comments)
    head.comments.push_back(copy(comment));
  // The first mapping is the main program, whatever samples use it.
  if (!profile.mappings.empty()) {
    pprof::Mapping mapping = profile.mappings.front();
    mapping.file_name = copy(mapping.file_name);
    mapping.build_id = copy(mapping.build_id);
    head.mappings.push_back(mapping);
  }
  std::string bytes;
  pprof::Encode(head, &bytes);
  return bytes;
}

uint32_t FindOrAddHead(Pack* pack, std::string head) {
  // Nearly always that of the profile before.
  const auto found = std::find(pack->heads.rbegin(), pack->heads.rend(), head);
  if (found != pack->heads.rend()) {
    return static_cast<uint32_t>(pack->heads.rend() - found) - 1;
  }
  pack->heads.push_back(std::move(head));
  return static_cast<uint32_t>(pack->heads.size()) - 1;
}

Pack SumOf(const Pack& pack) {
  size_t stacks = 0;
  for (const PackedProfile& profile : pack.profiles) {
    if (!profile.stacks.empty()) stacks = std::max<size_t>(stacks, profile.stacks.back() + 1);
  }
  std::vector<int64_t> sums(stacks * pack.width);
  std::vector<bool> used(stacks);
  PackedProfile sum;
  Pack result{.width = pack.width};
  for (const PackedProfile& profile : pack.profiles) {
    FindOrAddHead(&result, pack.heads[profile.head]);
    if (!sum.has_time && (profile.has_time || sum.time_ns == 0)) {
      sum.time_ns = profile.time_ns;
      sum.has_time = profile.has_time;
    }
    sum.duration_ns = pprof::WrappingSum(sum.duration_ns, profile.duration_ns);
    const size_t count = profile.stacks.size();
    for (size_t i = 0; i < count; ++i) {
      const size_t stack = profile.stacks[i];
      used[stack] = true;
      for (size_t type = 0; type < pack.width; ++type) {
        int64_t& value = sums[stack * pack.width + type];
        value = pprof::WrappingSum(value, profile.values[type * count + i]);
      }
    }
  }
  for (size_t stack = 0; stack < stacks; ++stack) {
    if (used[stack]) sum.stacks.push_back(static_cast<uint32_t>(stack));
  }
  for (size_t type = 0; type < pack.width; ++type) {
    for (const uint32_t stack : sum.stacks)
      sum.values.push_back(sums[stack * pack.width + type]);
  }
  result.profiles.push_back(std::move(sum));
  return result;
}

}  // namespace flamefleet::store

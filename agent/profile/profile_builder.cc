// SPDX-License-Identifier: Apache-2.0
#include "agent/profile/profile_builder.h"

#include <algorithm>
#include <numeric>

#include "base/utf8.h"

namespace flamefleet::agent {
namespace {

constexpr uint32_t kKernelImage = UINT32_MAX - 1;

// Kernel text, modules and BPF programs of x86-64.
constexpr uint64_t kKernelStart = 0xffffffff80000000;
constexpr uint64_t kKernelLimit = UINT64_MAX;

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

void ProfileBuilder::Prepare(const Window& window) {
  frame_places_.clear();
  for (const Window::Stack& stack : window.stacks()) {
    if (stack.image == kNoImage) continue;
    const ProcessImage* const image = window.images[stack.image].get();
    const StackSample sample = window.At(stack);
    for (size_t i = 0; image != nullptr && i < sample.user_frames.size(); ++i) {
      const uint64_t pc = sample.user_frames[i] - (i > 0 ? 1 : 0);
      if (!frame_places_.try_emplace({stack.image, pc}, 0).second) continue;
      if (const ImageMapping* const mapping = image->Find(pc))
        symbolizer_->WantLines(*image, *mapping, pc);
    }
  }
  symbolizer_->ResolveLines();
}

void ProfileBuilder::Build(const Window& window, std::span<const uint32_t> stacks,
                           pprof::Profile* profile) {
  profile_ = profile;
  profile->Clear();
  mapping_numbers_.clear();
  mapping_ranks_.clear();
  kernel_mapping_ = pprof::kNone;
  frame_places_.clear();
  place_numbers_.clear();
  function_numbers_.clear();
  places_.clear();
  place_lines_.clear();
  rows_.clear();
  sample_places_.clear();

  const pprof::ValueType type{.type = profile->strings.Intern("cpu"),
                              .unit = profile->strings.Intern("nanoseconds")};
  profile->sample_types.push_back(type);
  profile->period_type = type;
  profile->period = static_cast<int64_t>(window.period_ns);
  profile->time_ns = window.start_ns;
  profile->duration_ns = window.duration_ns;

  for (const uint32_t number : stacks)
    AddStack(window, window.stacks()[number]);
  OrderMappings();
  OrderLocations();
  WriteSamples(window);
  profile_ = nullptr;
}

void ProfileBuilder::AddStack(const Window& window, const Window::Stack& stack) {
  const StackSample sample = window.At(stack);
  SampleRow row;
  row.first = static_cast<uint32_t>(sample_places_.size());
  row.thread = stack.thread;
  row.value = static_cast<int64_t>(stack.count * window.period_ns);
  // A caller's frame is its return address; the first frame of each half is where it was
  // interrupted.
  for (size_t i = 0; i < sample.kernel_frames.size(); ++i)
    sample_places_.push_back(
        PlaceOf(window, kKernelImage, sample.kernel_frames[i] - (i > 0 ? 1 : 0)));
  for (size_t i = 0; i < sample.user_frames.size(); ++i)
    sample_places_.push_back(PlaceOf(window, stack.image, sample.user_frames[i] - (i > 0 ? 1 : 0)));
  row.size = static_cast<uint32_t>(sample_places_.size()) - row.first;
  rows_.push_back(row);
}

uint32_t ProfileBuilder::PlaceOf(const Window& window, uint32_t image_number, uint64_t pc) {
  const auto [found, is_new] = frame_places_.try_emplace({image_number, pc}, 0);
  if (!is_new) return found->second;
  static const SymbolName kUnknown{.name = "[unknown]", .system_name = ""};
  Place place{.address = pc};
  Symbolizer::Frame frame{.name = &kUnknown};
  std::span<const Symbolizer::Frame> frames(&frame, 1);
  if (image_number == kKernelImage) {
    place.mapping = KernelMapping();
    frame.name = &symbolizer_->KernelName(pc);
  } else {
    const ProcessImage* const image =
        image_number == kNoImage ? nullptr : window.images[image_number].get();
    const ImageMapping* const mapping = image == nullptr ? nullptr : image->Find(pc);
    if (mapping != nullptr) {
      place.mapping = UserMapping(*image, *mapping);
      place.address = pc - mapping->start + profile_->mappings[place.mapping].memory_start;
      frames = symbolizer_->UserFrames(*image, *mapping, pc);
    }
  }
  found->second = AddPlace(place, frames);
  return found->second;
}

uint32_t ProfileBuilder::FunctionOf(const Symbolizer::Frame& frame) {
  const std::tuple key(profile_->strings.Intern(frame.name->name),
                       profile_->strings.Intern(frame.name->system_name),
                       profile_->strings.Intern(frame.file));
  const auto [found, is_new] =
      function_numbers_.try_emplace(key, static_cast<uint32_t>(profile_->functions.size()));
  if (is_new) {
    profile_->functions.push_back(
        {.name = std::get<0>(key), .system_name = std::get<1>(key), .file_name = std::get<2>(key)});
  }
  return found->second;
}

uint32_t ProfileBuilder::AddPlace(const Place& place, std::span<const Symbolizer::Frame> frames) {
  // One address of one mapping has several names only where code is made at run time, and that has
  // no inlined functions: the innermost one tells places apart.
  const auto [found, is_new] =
      place_numbers_.try_emplace(std::tuple(place.mapping, place.address, FunctionOf(frames[0])),
                                 static_cast<uint32_t>(places_.size()));
  if (!is_new) return found->second;
  places_.push_back(place);
  places_.back().first_line = static_cast<uint32_t>(place_lines_.size());
  places_.back().line_count = static_cast<uint32_t>(frames.size());
  for (const Symbolizer::Frame& frame : frames) {
    place_lines_.push_back({.function = FunctionOf(frame), .line = frame.line});
    if (place.mapping == pprof::kNone) continue;
    pprof::Mapping& mapping = profile_->mappings[place.mapping];
    mapping.has_file_names |= !frame.file.empty();
    mapping.has_line_numbers |= frame.line != 0;
    mapping.has_inline_frames |= frames.size() > 1;
  }
  return found->second;
}

uint32_t ProfileBuilder::UserMapping(const ProcessImage& image, const ImageMapping& mapping) {
  // Memory without a file: one mapping per address, whatever the process.
  const uint64_t part = mapping.file ? mapping.offset : mapping.start;
  const auto [found, is_new] =
      mapping_numbers_.try_emplace(MappingKey(mapping.file.get(), mapping.path, part),
                                   static_cast<uint32_t>(profile_->mappings.size()));
  if (!is_new) {
    pprof::Mapping& known = profile_->mappings[found->second];
    known.memory_limit =
        std::max(known.memory_limit, known.memory_start + (mapping.end - mapping.start));
    return found->second;
  }
  const std::string name = mapping.path.empty() ? "[anonymous]" : ToUtf8(mapping.path);
  profile_->mappings.push_back(
      {.memory_start = mapping.start,
       .memory_limit = mapping.end,
       .file_offset = mapping.offset,
       .file_name = profile_->strings.Intern(name),
       .build_id = profile_->strings.Intern(symbolizer_->BuildId(image, mapping)),
       .has_functions = true});
  mapping_ranks_.push_back(BaseName(mapping.path) == image.executable ? 0 : 1);
  return found->second;
}

uint32_t ProfileBuilder::KernelMapping() {
  if (kernel_mapping_ != pprof::kNone) return kernel_mapping_;
  kernel_mapping_ = static_cast<uint32_t>(profile_->mappings.size());
  profile_->mappings.push_back({.memory_start = kKernelStart,
                                .memory_limit = kKernelLimit,
                                .file_name = profile_->strings.Intern("[kernel.kallsyms]"),
                                .build_id = profile_->strings.Intern(symbolizer_->KernelBuildId()),
                                .has_functions = true});
  mapping_ranks_.push_back(2);
  return kernel_mapping_;
}

void ProfileBuilder::OrderMappings() {
  const std::vector<pprof::Mapping>& mappings = profile_->mappings;
  std::vector<uint32_t> order(mappings.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [this, &mappings](uint32_t number) {
    const pprof::Mapping& mapping = mappings[number];
    return std::tuple(mapping_ranks_[number], mapping.memory_start, mapping.file_offset, number);
  });
  std::vector<pprof::Mapping> sorted;
  std::vector<uint32_t> new_number(order.size());
  sorted.reserve(order.size());
  for (const uint32_t number : order) {
    new_number[number] = static_cast<uint32_t>(sorted.size());
    sorted.push_back(mappings[number]);
  }
  profile_->mappings = std::move(sorted);
  for (Place& place : places_) {
    if (place.mapping != pprof::kNone) place.mapping = new_number[place.mapping];
  }
}

void ProfileBuilder::OrderLocations() {
  std::vector<uint32_t> order(places_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [this](uint32_t number) {
    const Place& place = places_[number];
    return std::tuple(place.mapping, place.address, place_lines_[place.first_line].function);
  });
  std::vector<uint32_t> new_number(order.size());
  for (const uint32_t number : order) {
    const Place& place = places_[number];
    new_number[number] = static_cast<uint32_t>(profile_->locations.size());
    profile_->locations.push_back({.address = place.address,
                                   .mapping = place.mapping,
                                   .first_line = static_cast<uint32_t>(profile_->lines.size()),
                                   .line_count = place.line_count});
    const auto lines = std::span(place_lines_).subspan(place.first_line, place.line_count);
    profile_->lines.insert(profile_->lines.end(), lines.begin(), lines.end());
  }
  for (uint32_t& place : sample_places_)
    place = new_number[place];
}

void ProfileBuilder::AddThreadLabels(const ThreadLabel& thread) {
  const auto add = [this](std::string_view key, std::string_view text) {
    profile_->sample_labels.push_back(
        {.key = profile_->strings.Intern(key), .text = profile_->strings.Intern(text)});
  };
  add("thread_name", thread.name);
  if (thread.id != 0) add("thread_id", std::to_string(thread.id));
}

void ProfileBuilder::WriteSamples(const Window& window) {
  const auto stack_of = [this](const SampleRow& row) {
    return std::span<const uint32_t>(sample_places_).subspan(row.first, row.size);
  };
  const auto is_before = [&](const SampleRow& a, const SampleRow& b) {
    const auto left = stack_of(a);
    const auto right = stack_of(b);
    const auto order = std::lexicographical_compare_three_way(left.rbegin(), left.rend(),
                                                              right.rbegin(), right.rend());
    if (order != 0) return order < 0;
    if (a.thread == kNoThread || b.thread == kNoThread) return a.thread < b.thread;
    return window.threads[a.thread] < window.threads[b.thread];
  };
  std::ranges::sort(rows_, is_before);
  const SampleRow* previous = nullptr;
  for (const SampleRow& row : rows_) {
    const auto stack = stack_of(row);
    if (previous != nullptr && previous->thread == row.thread &&
        std::ranges::equal(stack_of(*previous), stack)) {
      profile_->values.back() += row.value;  // equal in two processes
      continue;
    }
    previous = &row;
    const auto first_label = static_cast<uint32_t>(profile_->sample_labels.size());
    if (row.thread != kNoThread) AddThreadLabels(window.threads[row.thread]);
    profile_->samples.push_back(
        {.first_location = static_cast<uint32_t>(profile_->sample_locations.size()),
         .location_count = row.size,
         .first_label = first_label,
         .label_count = static_cast<uint32_t>(profile_->sample_labels.size()) - first_label});
    profile_->sample_locations.insert(profile_->sample_locations.end(), stack.begin(), stack.end());
    profile_->values.push_back(row.value);
  }
}

}  // namespace flamefleet::agent

// SPDX-License-Identifier: Apache-2.0
// TextPool: each text once, however many objects have it. Pods of one workload share nearly all of
// theirs.
//
// Thread: none of its own; the owner's lock guards the pool and all texts of it.
// Bounds: the texts that are held. Lifetime: the pool outlives its texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace flamefleet {

class TextPool {
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  // To the number of holders.
  using Texts = std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>>;

 public:
  // Holds one text; equal texts of a pool have equal addresses.
  class Text {
   public:
    Text() = default;
    Text(const Text& other) : pool_(other.pool_), entry_(other.entry_) {
      if (entry_ != nullptr) ++entry_->second;
    }
    Text(Text&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          entry_(std::exchange(other.entry_, nullptr)) {}
    Text& operator=(Text other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(entry_, other.entry_);
      return *this;
    }
    ~Text() {
      if (entry_ != nullptr && --entry_->second == 0) pool_->Forget(entry_->first);
    }

    std::string_view view() const {
      return entry_ == nullptr ? std::string_view() : std::string_view(entry_->first);
    }
    friend bool operator==(const Text& a, const Text& b) { return a.entry_ == b.entry_; }

   private:
    friend class TextPool;
    Text(TextPool* pool, Texts::value_type* entry) : pool_(pool), entry_(entry) {
      ++entry_->second;
    }
    TextPool* pool_ = nullptr;
    Texts::value_type* entry_ = nullptr;  // nullptr: the empty text
  };

  TextPool() = default;
  TextPool(const TextPool&) = delete;
  TextPool& operator=(const TextPool&) = delete;

  Text Intern(std::string_view text) {
    if (text.empty()) return {};
    auto found = texts_.find(text);
    if (found == texts_.end()) found = texts_.emplace(std::string(text), 0).first;
    return {this, &*found};
  }

  size_t size() const { return texts_.size(); }

 private:
  void Forget(const std::string& text) { texts_.erase(texts_.find(text)); }

  Texts texts_;
};

}  // namespace flamefleet

// SPDX-License-Identifier: Apache-2.0
// The field numbers of proto/pprof/profile.proto, for the hand-written encoder and decoder. Private
// to base/pprof.
#pragma once

#include <cstdint>

namespace flamefleet::pprof {

struct ProfileField {
  enum : uint32_t {
    kSampleType = 1,
    kSample = 2,
    kMapping = 3,
    kLocation = 4,
    kFunction = 5,
    kStringTable = 6,
    kDropFrames = 7,
    kKeepFrames = 8,
    kTimeNanos = 9,
    kDurationNanos = 10,
    kPeriodType = 11,
    kPeriod = 12,
    kComment = 13,
    kDefaultSampleType = 14,
    kDocUrl = 15,
  };
};

struct ValueTypeField {
  enum : uint32_t { kType = 1, kUnit = 2 };
};

struct SampleField {
  enum : uint32_t { kLocationId = 1, kValue = 2, kLabel = 3 };
};

struct LabelField {
  enum : uint32_t { kKey = 1, kStr = 2, kNum = 3, kNumUnit = 4 };
};

struct MappingField {
  enum : uint32_t {
    kId = 1,
    kMemoryStart = 2,
    kMemoryLimit = 3,
    kFileOffset = 4,
    kFilename = 5,
    kBuildId = 6,
    kHasFunctions = 7,
    kHasFilenames = 8,
    kHasLineNumbers = 9,
    kHasInlineFrames = 10,
  };
};

struct LocationField {
  enum : uint32_t { kId = 1, kMappingId = 2, kAddress = 3, kLine = 4, kIsFolded = 5 };
};

struct LineField {
  enum : uint32_t { kFunctionId = 1, kLine = 2, kColumn = 3 };
};

struct FunctionField {
  enum : uint32_t { kId = 1, kName = 2, kSystemName = 3, kFilename = 4, kStartLine = 5 };
};

}  // namespace flamefleet::pprof

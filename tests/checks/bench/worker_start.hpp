/// Stages of a worker's start, read from its log. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::bench {

/// Stages in order. The log line that has these words ends the stage.
struct StartStage {
  const char* name;
  std::string_view words;
};
inline constexpr std::array<StartStage, 5> kStartStages{{{"exec", " starting model="},
                                                         {"tokenizer", " model opened "},
                                                         {"attach", " attached to the broker "},
                                                         {"map", " weights bound "},
                                                         {"ready", " ready name="}}};

/// The ends of the stages, in µs since 1970.
using StartTimes = std::array<std::int64_t, kStartStages.size()>;

/// Finds the last start in the log, whose times are local times.
/// Errors: BadRequest if the log lacks a stage, or a time cannot be read.
Result<StartTimes> last_start(std::string_view log);

}  // namespace leasehold::bench

/// Reads the config of a built model file, and checks refusals.
#pragma once

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "kernels/model/config.hpp"
#include "tests/support/gguf_builder.hpp"

namespace leasehold::testing {

inline Result<ModelConfig> config_of(const GgufBuilder& builder) {
  const TemporaryFile file(builder.bytes());
  const auto gguf = GgufFile::open(file.path());
  REQUIRE(gguf.has_value());
  return read_config(*gguf);
}

/// A change to a valid model and the expected error.
struct Change {
  GgufBuilder builder;
  Errc code;
  const char* says;
};

inline void check_refused(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    INFO(change.says);
    const auto config = config_of(change.builder);
    REQUIRE_FALSE(config.has_value());
    CHECK(name(config.error().code) == name(change.code));
    CHECK_THAT(config.error().detail, Catch::Matchers::Contains(change.says));
  }
}

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace leasehold::testing

/// What one rendering may cost. A template comes with a model file and messages come from a client;
/// neither may hold the worker up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leasehold::jinja {

struct Limits {
  std::size_t output_bytes = std::size_t{16} << 20;
  /// Of evaluation; one for each node, and one for each 64 bytes of text that are looked at or
  /// made.
  std::uint64_t steps = 2'000'000;
  std::uint32_t call_depth = 400;  ///< Of expressions, statements and macros within each other.
  std::uint32_t value_depth = 100;
  std::int64_t range_items = 100'000;
};

inline constexpr std::size_t kMaxTemplateBytes = std::size_t{1} << 20;
inline constexpr std::uint32_t kMaxNesting = 200;  ///< Of a template's text.

}  // namespace leasehold::jinja

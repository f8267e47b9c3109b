/// Limits of one rendering. Templates come from model files and messages from clients; neither may
/// block the worker.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leasehold::jinja {

struct Limits {
  std::size_t output_bytes = std::size_t{16} << 20;
  /// Evaluation steps: one per node, and one per 64 bytes of text read or written.
  std::uint64_t steps = 2'000'000;
  std::uint32_t call_depth = 400;  ///< Nesting of expressions, statements and macros.
  std::uint32_t value_depth = 100;
  std::int64_t range_items = 100'000;
};

inline constexpr std::size_t kMaxTemplateBytes = std::size_t{1} << 20;
inline constexpr std::uint32_t kMaxNesting = 200;  ///< Nesting in the template's text.

/// Counts one level of nesting for its lifetime.
class Nesting {
 public:
  explicit Nesting(std::uint32_t& depth) : depth_(depth) { ++depth_; }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  std::uint32_t& depth_;
};

}  // namespace leasehold::jinja

/// The tiles of a launch, as passes over matrices.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "common/expects.hpp"

namespace leasehold {

/// Consecutive tiles in passes. The tiles of a pass go through one matrix from its first row to its
/// last. With several nodes of memory each pass is divided among the nodes (node_tiles.hpp).
class TilePasses {
 public:
  /// `times` consecutive passes of `n_tiles` tiles each.
  struct EqualPasses {
    std::uint32_t n_tiles = 0;
    std::uint32_t times = 0;

    bool operator==(const EqualPasses&) const = default;
  };
  /// Enough for three matrices, or for passes of two sizes over one matrix.
  static constexpr std::uint32_t kMaxAdded = 4;

  TilePasses() = default;
  /// One pass.
  TilePasses(std::uint32_t n_tiles) { add(n_tiles); }  // NOLINT(google-explicit-constructor)

  /// Precondition: called at most kMaxAdded times.
  void add(std::uint32_t n_tiles, std::uint32_t times = 1) {
    expects(n_added_ < kMaxAdded, "a launch has few kinds of passes");
    added_[n_added_++] = {n_tiles, times};
    count_ += n_tiles * times;
  }
  /// Tiles of all passes.
  std::uint32_t count() const { return count_; }
  std::span<const EqualPasses> added() const { return std::span(added_).first(n_added_); }

 private:
  std::array<EqualPasses, kMaxAdded> added_{};
  std::uint32_t n_added_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace leasehold

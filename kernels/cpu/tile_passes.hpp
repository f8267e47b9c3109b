/// The tiles of a launch, as passes over matrices.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace leasehold {

/// Consecutive tiles in passes. The tiles of a pass go through one matrix from its first row to its
/// last. With several nodes of memory each pass is cut among these (node_tiles.hpp).
class TilePasses {
 public:
  static constexpr std::uint32_t kMost = 8;  ///< Passes beyond are one with the last.

  TilePasses() = default;
  /// One pass.
  TilePasses(std::uint32_t n_tiles) { add(n_tiles); }  // NOLINT(google-explicit-constructor)

  void add(std::uint32_t n_tiles) {
    const std::uint32_t end = count() + n_tiles;
    if (n_passes_ < kMost) ++n_passes_;
    ends_[n_passes_ - 1] = end;
  }
  /// Tiles of all passes.
  std::uint32_t count() const { return n_passes_ == 0 ? 0 : ends_[n_passes_ - 1]; }
  /// Of each pass, ascending.
  std::span<const std::uint32_t> ends() const { return std::span(ends_).first(n_passes_); }

 private:
  std::array<std::uint32_t, kMost> ends_{};
  std::uint32_t n_passes_ = 0;
};

}  // namespace leasehold

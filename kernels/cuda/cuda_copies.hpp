/// Copies from the host into leased memory on the card, and between the card and leased host
/// memory.
#pragma once

#include "kernels/cuda/step_runner.hpp"

namespace leasehold::cuda {

class CudaCopies {
 public:
  /// The context and the runner outlive it.
  static Result<CudaCopies> create(const Context& context, StepRunner& runner);

  LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args);
  LaunchStatus copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args);
  void write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces);
  /// Makes the staging buffer zero, because it holds copies of leased bytes.
  void clear() { launcher_.zero(staging_); }

 private:
  /// The pieces of a `write` in the staging buffer, which holds a counter of blocks, the list of
  /// pieces and their bytes.
  struct StagedPieces {
    std::size_t size_bytes = 0;
    std::uint32_t n_first = 0;  ///< Pieces that are written first: those without is_last.
    std::uint32_t largest_first_bytes = 0;
  };
  CudaCopies(const Context& context, StepRunner& runner, PinnedBuffer halves)
      : context_(context),
        runner_(runner),
        launcher_(runner.launcher()),
        halves_(std::move(halves)) {}

  Result<void> ensure_staging(std::size_t size_bytes);
  StagedPieces stage(std::span<const LeasedPiece* const> pieces, const LaunchPermit& permit) const;
  /// Writes at most kMaxScatterPieces pieces; those with is_last come at the end.
  void write_ordered(const LaunchPermit& permit, std::span<const LeasedPiece* const> pieces);

  const Context& context_;
  StepRunner& runner_;
  Launcher& launcher_;
  PinnedBuffer halves_;   // for copy_in: the host fills one half while the card copies the other
  DeviceBuffer staging_;  // for `write`; grows on demand
  PinnedBuffer host_staging_;
};

}  // namespace leasehold::cuda

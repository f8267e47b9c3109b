/// Shared by backends that compute in host memory: scratch is ordinary memory, and a launch is over
/// when it returns.
#pragma once

#include "common/zeroed_array.hpp"
#include "ipc/segment/thread_gate.hpp"
#include "kernels/backend.hpp"

namespace leasehold {

/// Writes pieces into leased host memory in the order that Backend::write promises.
void write_on_host(const LaunchPermit& permit, std::span<const LeasedPiece> pieces);

/// Bytes that a unit copies. Such a unit takes at most about 15 µs, including the page faults of
/// first touch.
inline constexpr std::size_t kCopyUnitBytes = 64 * 1024;

/// Copies unit `unit` of a copy_in, if may_copy allows it.
void copy_in_unit(const LaunchPermit& permit, const LaunchContext& context, const CopyInArgs& args,
                  std::size_t unit);

/// Copies the piece of kCopyUnitBytes that copy_piece_of describes, unless its sequence is not
/// live.
void copy_piece(const LaunchPermit& permit, const CopyBlocksArgs& args, std::uint32_t piece);

class HostBackend : public Backend {
 public:
  std::byte* allocate_scratch(std::size_t size_bytes) override;
  bool accepts_row_ranges() const override { return true; }
  void clear_scratch(std::byte* at, std::size_t size_bytes) override;
  std::span<const float> fetch(const float* at, std::size_t count) override { return {at, count}; }
  void write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) override {
    write_on_host(permit, pieces);
  }

 private:
  std::vector<ZeroedArray<unsigned char>> scratch_;
};

}  // namespace leasehold

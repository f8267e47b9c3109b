/// Copies slices of one adapter into the memory of its lease. Each unit polls the lease, so a
/// revoked load stops within one unit.
///
/// Lifetime: everything in Dependencies outlives it. Threads: one (the engine's).
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "ipc/segment/thread_gate.hpp"
#include "kernels/backend.hpp"
#include "worker/adapter/adapter_reader.hpp"
#include "worker/engine/step_refusals.hpp"
#include "worker/kv/lease_memory.hpp"

namespace leasehold {

class AdapterCopy {
 public:
  static constexpr std::size_t kUnitBytes = 128 << 10;

  struct Dependencies {
    const LeaseMemory* memory = nullptr;
    Backend* backend = nullptr;
    ThreadGate* gate = nullptr;  ///< The engine thread's.
    const TableReader* table = nullptr;
    const std::atomic<std::uint64_t>* revocations = nullptr;  ///< The counter of this worker.
    RevocationObserver* observer = nullptr;
  };
  /// The extents of the lease are in `memory`. Errors: LeaseRevoked if the lease has ended;
  /// UntrustedSegment if the extents cannot hold the layout.
  static Result<AdapterCopy> create(const Dependencies& dependencies, LeaseId lease,
                                    std::shared_ptr<AdapterReader> reader);

  AdapterCopy(AdapterCopy&&) = default;
  AdapterCopy& operator=(AdapterCopy&&) = delete;
  ~AdapterCopy() {
    while (!slices_.empty()) remove_slice();
  }

  void add(AdapterSlice slice) { slices_.push_back(std::move(slice)); }
  std::size_t slices() const { return slices_.size(); }  ///< Added and not copied.
  bool is_done() const { return is_done_; }

  /// Copies at most `max_bytes` of the slices that were added, and returns how many. Ends after the
  /// unit in which the counter of revocations moves, because texts of a revoked lease must end.
  /// Errors: LeaseRevoked when a unit finds the lease revoked; the fault of the device.
  Result<std::uint64_t> copy(std::uint64_t max_bytes);

  /// The addresses of all matrices. Precondition: `is_done`.
  std::shared_ptr<const AdapterMatrices> matrices(std::uint32_t n_layers) const;

 private:
  AdapterCopy(const Dependencies& dependencies, LeaseId lease,
              std::shared_ptr<AdapterReader> reader, std::vector<LeaseMemory::Extent> extents)
      : deps_(dependencies),
        lease_(lease),
        reader_(std::move(reader)),
        extents_(std::move(extents)) {}
  void remove_slice();
  Result<void> copy_unit(Leased<std::byte> to, std::span<const std::byte> bytes);

  Dependencies deps_;
  LeaseId lease_;
  std::shared_ptr<AdapterReader> reader_;  // only its layout and weights, which never change
  std::vector<LeaseMemory::Extent> extents_;
  std::deque<AdapterSlice> slices_;
  std::size_t part_ = 0;    // of the first slice, that is copied next
  std::size_t copied_ = 0;  // of that part
  bool is_done_ = false;
};

}  // namespace leasehold

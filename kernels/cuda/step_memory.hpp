/// The input of a step on the card. Its addresses do not change between steps, so a graph made for
/// one step also serves later ones.
///
///   head     DeviceStep | rows | tokens | logit rows | first block of each table |
///            query_scales | cos_sin | window_cos_sin
///   tables   addresses of blocks, table after table: group by group, sequence by sequence
///   states   addresses of the blocks of recurrent states (device::StateTables)
///   adapters addresses of the matrices of adapters (device::DeviceAdapters)
///
/// Lifetime: the context outlives it. Threads: the engine's. create() fixes the sizes; the tables
/// of each group have room for kMaxStepSequences sequences of `max_context` positions.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/kv_addressing.hpp"
#include "kernels/cuda/device/low_rank_params.hpp"
#include "kernels/cuda/device/recurrent_params.hpp"
#include "kernels/cuda/launcher.hpp"

namespace leasehold::cuda {

class StepMemory {
 public:
  static Result<StepMemory> create(const Context& context, const BackendLimits& limits);

  /// Uploads the step in the launcher's stream, the block tables only if they changed. This
  /// function does not follow block addresses; only kernels behind the gate do.
  void upload(const StepInput& input, Launcher& launcher);

  device::KernelGate gate(const device::GateMirror* mirror) const;
  const std::int32_t* tokens() const { return at<std::int32_t>(offsets_.tokens); }
  const std::uint32_t* logit_rows() const { return at<std::uint32_t>(offsets_.logit_rows); }
  const float* query_scales() const { return at<float>(offsets_.query_scales); }
  const float* cos_sin() const { return at<float>(offsets_.cos_sin); }
  const float* window_cos_sin() const { return at<float>(offsets_.window_cos_sin); }
  /// The tables of a group of layers (KvLayer::group).
  device::BlockTables block_tables(std::uint32_t group) const;
  device::StateTables state_tables() const {
    return {.addresses = reinterpret_cast<const std::uint64_t*>(states_.data())};
  }
  device::DeviceAdapters adapters() const {
    return {.matrices = reinterpret_cast<const device::DeviceLowRank*>(adapters_.memory.data()),
            .n_slots = adapters_.n_slots};
  }

  /// Positions of the longest sequence of the uploaded step.
  std::uint32_t longest() const { return longest_; }
  std::uint32_t n_runs() const { return n_runs_; }  ///< Runs of rows of one sequence.
  /// Some sequence has several rows.
  bool has_multi_row() const { return n_runs_ < n_rows_; }

 private:
  /// Offsets in bytes.
  struct Offsets {
    std::size_t rows;
    std::size_t tokens;
    std::size_t logit_rows;
    std::size_t first_block;
    std::size_t query_scales;
    std::size_t cos_sin;
    std::size_t window_cos_sin;
    std::size_t end;
  };
  static Offsets compute_offsets(const BackendLimits& limits);

  StepMemory(const Offsets& offsets, const BackendLimits& limits)
      : offsets_(offsets),
        max_rows_(limits.max_rows),
        n_kv_groups_(limits.n_kv_groups),
        adapters_{.n_slots = limits.adapter_slots} {}
  template <class T>
  const T* at(std::size_t offset) const {
    return reinterpret_cast<const T*>(head_.data() + offset);
  }
  template <class T>
  void put(std::size_t offset, std::span<const T> values);
  struct PutTables {
    std::size_t count = 0;    ///< Number of addresses.
    bool is_uploaded = true;  ///< The card has all addresses.
  };
  PutTables put_tables(const StepInput& input, const LaunchPermit& permit);
  /// Returns the number of addresses.
  std::size_t put_states(std::span<const StateTableView> states, const LaunchPermit& permit);
  /// [n_sequences, n_slots] matrices, on the card and on the host.
  struct Adapters {
    std::uint32_t n_slots;
    DeviceBuffer memory = {};
    PinnedBuffer host = {};
    std::size_t n_uploaded = 0;  ///< Sequences whose matrices on the host the card has.
  };
  /// Returns true if the card has all of these matrices.
  bool put_adapters(AdapterTable adapters, const LaunchPermit& permit);

  Offsets offsets_;
  std::uint32_t max_rows_;
  std::uint32_t n_kv_groups_;
  DeviceBuffer head_;
  DeviceBuffer tables_;
  DeviceBuffer states_;
  Adapters adapters_;
  PinnedBuffer host_head_;
  PinnedBuffer host_tables_;
  PinnedBuffer host_states_;
  std::size_t n_uploaded_ = 0;  // addresses in host_tables_ that the card has
  std::uint32_t longest_ = 0;
  std::uint32_t n_rows_ = 0;
  std::uint32_t n_runs_ = 0;
};

}  // namespace leasehold::cuda

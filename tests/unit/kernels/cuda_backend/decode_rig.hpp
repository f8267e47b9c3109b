/// A small artificial model on the CUDA backend, one decode row per sequence, with control of the
/// fake driver. Its layers multiply halves, or int8 if their matrices are row groups.
///
/// Lifetime: neither copied nor moved. Threads: steps from one at a time. The destructor restores
/// and releases the card.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "kernels/cuda/cuda_backend.hpp"
#include "tests/contract/backend/grouped_matrix.hpp"
#include "tests/contract/backend/rig.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/test_card.hpp"
#include "tests/support/unit_watch.hpp"

namespace leasehold::testing {

/// A random matrix of rows, or of row groups.
class RigMatrix {
 public:
  RigMatrix(SeededRandom& random, TensorType type, std::uint32_t n_out, std::uint32_t n_in,
            MatrixLayout layout);
  WeightMatrix view() const;
  void reach(DeviceRegistration& registration) const;

 private:
  std::optional<Matrix> rows_;
  std::optional<GroupedMatrix> groups_;
};

class DecodeRig {
 public:
  static constexpr std::uint32_t kLayers = 8;
  static constexpr std::uint32_t kSequences = 3;
  static constexpr std::uint32_t kWidth = 64;
  static constexpr std::uint32_t kVocabulary = 40;
  static constexpr std::uint32_t kDead = 1;  ///< The sequence whose lease tests revoke.
  static constexpr SequenceMask kSurvivors = 0b101;

  /// `value` is the type of the projection of values; the others multiply Q8_0.
  explicit DecodeRig(cuda::CudaOptions options = {}, MatrixLayout layout = MatrixLayout::Rows,
                     TensorType value = TensorType::Q8_0);
  DecodeRig(const DecodeRig&) = delete;
  DecodeRig& operator=(const DecodeRig&) = delete;
  ~DecodeRig();

  /// Runs a step of all sequences' newest positions, under new leases.
  LaunchStatus step(std::uint64_t engine_generation = 1);
  /// Prepares steps under the engine's lease of that generation. Returns the number of shapes.
  std::size_t prepare(std::uint64_t engine_generation = 1);
  /// Runs two rows of the first sequence and one row of each other.
  LaunchStatus prefill();
  /// The logits of one row after a step.
  std::vector<float> logits(std::uint32_t row);
  std::vector<std::vector<float>> all_logits();
  void revoke(std::uint32_t sequence) { table.revoke(FakeTable::slot_of(sequence)); }

  std::function<void()> before_finish;  ///< Called after all launches of a step.
  FakeTable table;
  AtUnits units;
  KvFixture kv;
  std::vector<BlockTableView> tables;  ///< Of the sequences; kv's unless a test changes them.
  std::unique_ptr<cuda::CudaBackend> backend;

 private:
  DecodeRig(SeededRandom random, cuda::CudaOptions options, MatrixLayout layout, TensorType value);
  LaunchStatus forward(const GateSet& gates, std::span<const RowRef> rows,
                       std::span<const std::uint32_t> logit_rows);
  SequenceMask operators(const GateSet& gates, std::span<const RowRef> rows,
                         std::span<const std::uint32_t> logit_rows);
  SequenceMask layer(const LaunchContext& context);
  SequenceMask attention_block(const LaunchContext& context);
  SequenceMask feed_forward(const LaunchContext& context);
  RmsNormArgs norm_args(LaunchSite site) const;
  float* take(std::size_t width);

  Matrix table_of_tokens_;
  RigMatrix query_;
  RigMatrix key_;
  RigMatrix out_;
  RigMatrix up_;
  RigMatrix value_;
  LeasedMemory norm_;
  DeviceRegistration reach_;
  float* x_;
  float* normed_;
  float* q_;
  float* k_;
  float* v_;
  float* attended_;
  float* wide_gate_;
  float* wide_up_;
  float* logits_;
};

/// The number of kernels of that name that ran since construction.
class KernelCount {
 public:
  explicit KernelCount(const char* kernel)
      : kernel_(kernel), before_(fake_cuda_kernel_count(kernel)) {}
  std::uint64_t operator()() const { return fake_cuda_kernel_count(kernel_) - before_; }

 private:
  const char* kernel_;
  std::uint64_t before_;
};

/// Waits until the engine, on another thread, has polled the lease words from beginning to end and
/// updated the mirror. Returns false if it does not.
bool engine_polls_again();

}  // namespace leasehold::testing

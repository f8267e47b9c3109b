/// A worker's forward pass without a worker: table, segment, gates, weights and KV cache in this
/// process. The caller decides what a step consists of; there is no scheduler and no sampling.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/result.hpp"
#include "ipc/region/mapping.hpp"
#include "ipc/segment/gate_set.hpp"
#include "kernels/backend.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/op_args.hpp"
#include "worker/model/config.hpp"
#include "worker/model/weights_layout.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

/// For gate sets that null_listener takes anything from.
class NullRefusalListener final : public RefusalListener {
 public:
  void refused(const GateRefusal&) noexcept override {}
  void quiet_progress() noexcept override {}
};

/// Where a local model computes and keeps what it has, when that is not the machine itself.
class LocalPlacement {
 public:
  virtual ~LocalPlacement() = default;
  virtual Result<std::unique_ptr<Backend>> make_backend(const BackendLimits& limits,
                                                        const ThreadGate& gate) = 0;
  /// Writable, with whatever stands in it.
  virtual Result<LeasedMapping> allocate(std::size_t size_bytes) = 0;
  /// Weights that are made up in their placement. Nothing: they are allocated, and read from the
  /// file.
  virtual Result<std::optional<LeasedMapping>> make_weights(const WeightsLayout&) {
    return std::nullopt;
  }
};

struct LocalOptions {
  std::string model_path;
  LocalPlacement* placement =
      nullptr;             ///< None: this machine, with the backend named below. Outlives it.
  bool reference = false;  ///< Else the CPU backend with `threads`.
  SimdPath simd = best_simd_path();
  std::uint32_t threads = 1;
  KvType kv_type = KvType::F16;
  std::uint32_t max_rows = 1;   ///< Of one step.
  std::uint32_t sequences = 1;  ///< At most kMaxStepSequences.
  std::uint32_t positions = 256;
  /// Blocks of all sequences in an order of chance; 0: one after the other.
  std::uint64_t scatter_seed = 0;
  /// Changes the model's numbers after they were read, for tests that want a wrong model.
  std::function<void(ModelConfig&)> modify_config;
  RefusalListener* listener = nullptr;  ///< None: null_listener is on_quiet. Outlives the model.
  GateProbe* probe = nullptr;
};

/// One position of a sequence: the next one it has not had.
struct LocalRow {
  std::uint32_t sequence = 0;
  TokenId token = 0;
  bool wants_logits = true;
};

/// Threads: one, which computes with the backend's own.
class LocalModel {
 public:
  /// Errors: those of reading the model; OutOfMemory; SystemError for a path the CPU lacks.
  static Result<std::unique_ptr<LocalModel>> load(LocalOptions options);
  ~LocalModel();

  const ModelConfig& config() const;

  /// One step. Rows of one sequence are neighbours; sequences stand in the batch as they come.
  /// Errors: PoolExhausted when a sequence has outgrown its room, and then nothing has moved.
  Result<void> forward(std::span<const LocalRow> rows);

  /// Of the i-th row of the last step that wanted logits.
  std::span<const float> logits(std::uint32_t i) const;  // [n_vocab]

  /// What a device knows of that row already.
  std::optional<TopLogits> top_logits(std::uint32_t i) const;
  /// For whom the last step was until its end: bit i for the i-th sequence in it.
  SequenceMask live() const;

  /// The sequence begins anew, at its first position or behind `position` others, of which keys and
  /// values are whatever stands there.
  void restart(std::uint32_t sequence, std::uint32_t position = 0);

  /// Takes the lease of a sequence away, under which no row is computed from then on; another
  /// thread may do it during a step.
  void revoke(std::uint32_t sequence);
  /// Tells once nothing runs any more that was begun before this call: waits for the unit at the
  /// gate, then leaves the rest to the backend. From another thread than the one that computes.
  void when_drained(std::move_only_function<void()> on_quiet);
  /// Grants it a new one. Between steps.
  void regrant(std::uint32_t sequence);

  Backend& backend();
  std::uint64_t weights_bytes() const;

  /// Run by all threads since `load`.
  std::uint64_t units() const;

 private:
  struct Impl;
  explicit LocalModel(std::unique_ptr<Impl> parts);
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold

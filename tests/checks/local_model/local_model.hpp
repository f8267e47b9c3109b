/// Runs a worker's forward pass in this process: with lease table, segment, gates, weights and KV
/// cache, but without scheduler and sampling. The caller chooses the rows of each step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/region/mapping.hpp"
#include "ipc/segment/gate_set.hpp"
#include "kernels/backend.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/weights_layout.hpp"
#include "kernels/op_args.hpp"
#include "tests/checks/local_model/local_adapters.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

/// Backend and memory of a local model on a device other than the CPU.
class LocalPlacement {
 public:
  virtual ~LocalPlacement() = default;
  virtual Result<std::unique_ptr<Backend>> make_backend(const BackendLimits& limits,
                                                        const ThreadGate& gate) = 0;
  /// Writable memory with undefined content.
  virtual Result<LeasedMapping> allocate(std::size_t size_bytes) = 0;
  /// Weights generated on the device. Returns nothing if the model must allocate the weights and
  /// read the file.
  virtual Result<std::optional<LeasedMapping>> make_weights(const WeightsLayout&) {
    return std::nullopt;
  }
};

struct LocalOptions {
  std::string model_path;
  LocalPlacement* placement = nullptr;  ///< Null: the CPU. Must outlive the model.
  bool reference = false;               ///< Use the reference backend instead of the CPU backend.
  SimdPath simd = best_simd_path();
  std::uint32_t threads = 1;
  KvType kv_type = KvType::F16;
  Arithmetic arithmetic = Arithmetic::F32;
  std::uint32_t max_rows = 1;   ///< Most rows of a step.
  std::uint32_t sequences = 1;  ///< At most kMaxStepSequences.
  std::uint32_t positions = 256;
  std::vector<LocalAdapter> adapters = {};
  bool has_swap = false;  ///< Allocate swap memory as large as the KV memory; CPU only.
  /// Seed for a random order of the KV blocks; 0: in order.
  std::uint64_t scatter_seed = 0;
  /// Changes the configuration after it was read, for tests that need a wrong model.
  std::function<void(ModelConfig&)> modify_config;
  RefusalListener* listener = nullptr;  ///< Null: ignore refusals. Must outlive the model.
  GateProbe* probe = nullptr;
};

/// The SIMD path of that name, or the fastest one of this CPU if no path has the name. Asks the
/// kernel for AMX only in the second case.
SimdPath simd_path_or_best(std::string_view name);

/// The next position of a sequence.
struct LocalRow {
  std::uint32_t sequence = 0;
  TokenId token = 0;
  bool wants_logits = true;
};

/// `count` rows of words for each of the first `sequences` sequences. The last row of each has
/// logits. A row's word depends on its sequence and on its place from `first` on.
std::vector<LocalRow> text_rows(std::uint32_t sequences, std::uint32_t count,
                                std::uint32_t first = 0);

/// Threads: one, unless a function says otherwise; the backend has its own.
class LocalModel {
 public:
  /// Errors: those of reading the model and of kv_layout_of; OutOfMemory; SystemError for a SIMD
  /// path that the CPU lacks.
  static Result<std::unique_ptr<LocalModel>> load(LocalOptions options);
  ~LocalModel();

  const ModelConfig& config() const;

  /// Computes one step. Rows of one sequence must be adjacent; sequences keep the order of `rows`.
  /// Errors: PoolExhausted when a sequence exceeds `positions`; then nothing has changed.
  Result<void> forward(std::span<const LocalRow> rows);

  /// Logits of the i-th row of the last step with `wants_logits`.
  std::span<const float> logits(std::uint32_t i) const;  // [n_vocab]

  /// The highest logits of that row, if the device computed them.
  std::optional<TopLogits> top_logits(std::uint32_t i) const;
  /// Sequences that the last step completed: bit i for the i-th sequence in it.
  SequenceMask live() const;

  /// Sets the next position of the sequence. Keys and values before it stay as they are.
  void restart(std::uint32_t sequence, std::uint32_t position = 0);

  /// Copies the blocks of the sequence's first `positions` positions to swap memory, or back.
  /// Preconditions: loaded with `has_swap`; `positions` are within the sequence.
  /// Errors: LeaseRevoked.
  Result<void> swap_out(std::uint32_t sequence, std::uint32_t positions);
  Result<void> swap_in(std::uint32_t sequence, std::uint32_t positions);
  /// Releases the pages of the swap memory, which then reads as zeros.
  Result<void> clear_swap();

  /// The adapter of the sequence's rows from now on, an index into LocalOptions::adapters; nullopt:
  /// none.
  void use_adapter(std::uint32_t sequence, std::optional<std::uint32_t> adapter);

  /// Revokes the lease of an adapter. Rows that use it are not computed any more.
  void revoke_adapter(std::uint32_t adapter);
  /// Revokes the lease of a sequence, whose rows are then not computed any more. Any thread, even
  /// during a step.
  void revoke(std::uint32_t sequence);
  /// Waits until the current unit has passed the gate, then calls `on_quiet` when the backend has
  /// finished all earlier work. Do not call it on the thread that computes.
  void when_settled(std::move_only_function<void()> on_quiet);
  /// Fences the lease of a sequence and grants a new one. Call it between steps.
  void regrant(std::uint32_t sequence);

  Backend& backend();
  std::uint64_t weights_bytes() const;

  /// Units run by all threads since `load`.
  std::uint64_t units() const;

 private:
  struct Impl;
  explicit LocalModel(std::unique_ptr<Impl> parts);
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold

/// A worker's forward pass without a worker: table, line, gates, weights and KV cache in this
/// process. The caller decides what a step consists of; there is no scheduler and no sampling.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/result.hpp"
#include "ipc/gate_set.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/op_args.hpp"
#include "worker/model/config.hpp"
#include "worker/tokenizer/token_id.hpp"

namespace leasehold {

/// For gate sets that nobody takes anything from.
class Nobody final : public RefusalListener {
 public:
  void refused(const Refusal&) noexcept override {}
  void quiet_progress() noexcept override {}
};

struct LocalOptions {
  std::string model_path;
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
  std::function<void(ModelConfig&)> alter;
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

  /// The sequence begins anew at its first position.
  void restart(std::uint32_t sequence);

  /// Run by all threads since `load`.
  std::uint64_t units() const;

 private:
  struct Parts;
  explicit LocalModel(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace leasehold

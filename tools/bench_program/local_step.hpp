/// A worker's forward pass without a worker: table, line, gates and weights in this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/result.hpp"
#include "ipc/gate_set.hpp"

namespace leasehold::bench {

/// For gate sets that nobody takes anything from.
class Nobody final : public RefusalListener {
 public:
  void refused(const Refusal&) noexcept override {}
  void quiet_progress() noexcept override {}
};

/// Threads: one, which computes alone.
class LocalStep {
 public:
  /// Errors: those of reading the model; OutOfMemory; SystemError without AVX2.
  static Result<std::unique_ptr<LocalStep>> load(const std::string& model_path);
  ~LocalStep();

  /// One decode step of one sequence: one row, with logits. Errors: PoolExhausted when the
  /// sequence has outgrown its memory.
  Result<void> step();
  std::uint64_t units() const;

 private:
  struct Parts;
  explicit LocalStep(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace leasehold::bench

/// The draft model of --draft-model: its file, its leases, and the proposer that runs the model.
///
/// The worker has two engine leases for the draft model: on its weights (part "draft") and on the
/// memory of its texts (part "draft.kv"): keys, values and recurrent states. The second is a
/// weights region that is never published, so the broker clears it when its lease ends. Weights
/// that another worker has already loaded are shared. When the model is its own draft, both share
/// the weights under one lease.
///
/// Lifetime: outlives the engine that uses the proposer. Threads: any for `is_live`, after
/// `load`; the engine's for the rest.
#pragma once

#include <memory>
#include <optional>

#include "worker/engine/propose/draft_proposer.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/lease/weights_source.hpp"
#include "worker/program/opened_model.hpp"

namespace leasehold {

class DraftModel {
 public:
  /// Opens and checks the file before the worker calls the broker. Returns null without
  /// --draft-model. Errors: those of GgufFile::open, read_config, Tokenizer and kv_layout_of;
  /// UnsupportedModel when the draft's vocabulary differs from that of `model`.
  static Result<std::unique_ptr<DraftModel>> open(const WorkerOptions& options,
                                                  const OpenedModel& model);

  DraftModel(const DraftModel&) = delete;
  DraftModel& operator=(const DraftModel&) = delete;

  const WeightsPlan& plan() const { return plan_; }
  /// The limits of a backend that computes both models. Errors: DeviceUnsupported for the memory of
  /// a GPU.
  Result<BackendLimits> backend_limits(const BackendLimits& engine, const Attachment& lent) const;
  /// Bytes of intermediate values in the draft's largest pass; 0 without a draft model.
  static std::uint64_t step_memory_bytes(const DraftModel* draft) {
    return draft == nullptr ? 0 : DraftProposer::backend_limits({}, draft->config_).scratch_bytes;
  }
  /// Called once, with a backend of these limits.
  std::shared_ptr<Proposer> make_proposer(Backend& backend, ThreadGate& engine_gate,
                                          RevocationObserver& observer);
  /// Takes both leases and loads the weights. Errors: those of WeightsSource::acquire and of
  /// `weights.open`.
  Result<void> load(WeightsSource::Dependencies dependencies);

  /// True while both leases are live, so that the draft proposes. Nothing without a draft model.
  static std::optional<bool> is_live(const DraftModel* draft) {
    if (draft == nullptr) return std::nullopt;
    return draft->proposer_->is_live();
  }

 private:
  DraftModel(GgufFile file, DraftProposer::Config config, WeightsPlan plan)
      : file_(std::move(file)), config_(std::move(config)), plan_(std::move(plan)) {}
  Result<DraftMemory> take_memory(const WeightsSource::Dependencies& from) const;

  GgufFile file_;
  DraftProposer::Config config_;
  WeightsPlan plan_;
  std::shared_ptr<DraftProposer> proposer_;
};

/// Errors: UnsupportedModel, with both names, when the sizes or the tokens differ.
Result<void> check_same_vocabulary(const Tokenizer& draft, const std::string& draft_name,
                                   const Tokenizer& model, const std::string& model_name);

}  // namespace leasehold

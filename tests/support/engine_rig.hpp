/// A whole engine in one process, with a real lease table, real extents and a real model.
///
/// The rig acts as the broker: it grants, revokes and fences in the broker's order. Time is a
/// ManualClock. The rig records every early completion.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/expects.hpp"
#include "ipc/table/lease_table.hpp"
#include "ipc/table/worker_segment.hpp"
#include "kernels/backend.hpp"
#include "tests/support/adapter_double.hpp"
#include "tests/support/test_paths.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/worker_gates.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::testing {

/// All events of one request.
struct RequestOutcome {
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> positions;
  std::vector<std::optional<Logprobs>> logprobs;  ///< Of `tokens`.
  std::vector<PromptToken> prompt;     ///< With log probabilities; each position arrived once.
  std::vector<Completed> completions;  ///< Exactly one, if the engine is correct.
  std::vector<AdmissionRejected> rejections;
  std::vector<Rebound> rebounds;
  std::vector<Preempted> preemptions;

  void add(const Token& token) {
    tokens.push_back(token.token);
    positions.push_back(token.position);
    logprobs.push_back(token.logprobs);
  }
  void add(const PromptLogprobs& next) {
    expects(next.position == prompt.size(), "prompt positions arrive once and in order");
    prompt.insert(prompt.end(), next.tokens.begin(), next.tokens.end());
  }
  void add(const Admitted&) {}
  void add(const Completed& completed) { completions.push_back(completed); }
  void add(const AdmissionRejected& rejected) { rejections.push_back(rejected); }
  void add(const Rebound& rebound) { rebounds.push_back(rebound); }
  void add(const Preempted& preempted) { preemptions.push_back(preempted); }
};

struct RigOptions {
  std::string model_path = bundled_model_path();
  bool reference = false;  ///< False: the CPU backend with `threads`.
  /// Makes the backend instead of both when set.
  std::function<std::unique_ptr<Backend>(const BackendLimits&, const ThreadGate&)> make_backend;
  /// Registers memory with a device, until the returned object is destroyed.
  std::function<std::shared_ptr<void>(Leased<const std::byte>, std::size_t)> reach;
  std::uint32_t threads = 1;
  bool reads_logprobs = true;  ///< False: log probabilities of prompts are never taken.
  KvType kv_type = KvType::F16;
  Arithmetic arithmetic = Arithmetic::F32;
  SchedulerLimits limits = {};
  MaskLimits masks = {};
  std::function<std::shared_ptr<Proposer>()> make_proposer = {};
  std::string draft_path;           ///< Proposes with this model; empty: no draft model.
  std::uint32_t draft_context = 0;  ///< 0: the draft model's.
  WeightsScope weights_scope = WeightsScope::Model;
  std::size_t extent_bytes = 2u << 20;
  std::size_t swap_extent_bytes = 0;  ///< 0: as `extent_bytes`.
  /// Prefaults extents, as a worker's mapper does. Otherwise only what is used takes memory.
  bool prefaults_extents = false;
  GateProbe* probe = nullptr;
  bool one_mapping = false;  ///< Both roles use the same addresses, as a sanitizer requires.
};

class RigDraft;
struct RigAdapter;

class EngineRig : public RevocationObserver {
 public:
  explicit EngineRig(RigOptions options = {});
  ~EngineRig() override;

  /// Grants a new lease with `extents` extents to the engine.
  LeaseId grant(const std::string& tenant, std::uint32_t extents = 1,
                std::uint32_t max_concurrent = 8);
  /// Grants a lease of scope Adapter with one extent, which is empty.
  LeaseId grant_adapter();
  /// Grants a shared lease, fills it with a text under the adapter of this name, and runs the steps
  /// of that. Empty: the base model.
  LeaseId publish(std::vector<TokenId> text, const std::string& adapter = {});
  /// Grants a shared lease, which has no text yet.
  LeaseId grant_shared();
  /// Grants a lease that belongs to no tenant, and fills it with an adapter of random matrices,
  /// which requests of this name then use. Equal seeds make equal content.
  AdapterUse load_adapter(const std::string& name, std::uint64_t seed, std::uint32_t rank = 4);
  void grow(LeaseId lease, std::uint32_t extents = 1, wire::MemoryPool pool = wire::MemoryPool::Kv);
  /// Ends a lease of the tenant, and lets the engine adopt its memory under a new one. With
  /// `is_revoked` the new lease is revoked before the adoption.
  std::pair<LeaseId, Engine::Adopted> adopt(LeaseId old, const std::string& tenant,
                                            bool is_revoked = false);
  /// Stores the revoked word, as the broker does.
  void revoke(LeaseId lease, RevokeReason reason = RevokeReason::Operator);
  void fence(LeaseId lease);
  /// Fences a lease, unmaps it and frees its memory.
  void drop(LeaseId lease);
  void set_deadline(LeaseId lease, TimePoint deadline) { table_.set_deadline(lease, deadline); }
  void set_drain_deadline(LeaseId lease, TimePoint deadline) {
    table_.set_drain_deadline(lease, deadline);
  }
  /// The lease of one part of the weights.
  LeaseId engine_lease(std::size_t part = 0) const { return engine_leases_[part]; }
  /// The draft model, if there is one.
  RigDraft& draft() { return *draft_; }
  const WeightsPlan& weights_plan() const { return plan_; }
  /// Fences every revoked part and restores it from the same memory under a new lease. Returns the
  /// number of parts.
  std::size_t restore_weights();
  /// Maps the rig's weights for a forward pass outside the engine.
  Weights map_weights() const;

  /// The extents of a lease, as the broker sees them.
  const std::map<ExtentId, MemoryObject>& extents(LeaseId lease) { return extents_[lease]; }
  /// The bytes of some blocks of a lease, read through a mapping of the broker.
  std::vector<std::byte> bytes_of(LeaseId lease, std::span<const BlockId> blocks);

  PromptRequest request(const std::string& tenant, LeaseId lease, const std::string& id,
                        std::vector<TokenId> prompt, std::uint32_t max_tokens) const;
  /// Submits a request whose adapter, if it has one, is loaded.
  Result<void> submit(const PromptRequest& request);
  std::vector<TokenId> encode(const std::string& text) const;
  /// The running sequence of a request, or null.
  const Sequence* sequence(const std::string& id) const;

  /// Ends what was stopped, runs one step and files its events by request. Throws when KV blocks
  /// are not conserved.
  Result<StepReport> step();
  /// CPU time of this thread in the engine's steps since the last call.
  double take_step_cpu_ns() { return std::exchange(step_cpu_ns_, 0.0); }
  /// Runs steps until no work is left, at most `max_steps`.
  void run(std::uint32_t max_steps = 10'000);

  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  Backend& backend() { return *backend_; }
  ThreadGate& engine_gate() { return *engine_gate_; }
  ManualClock& clock() { return clock_; }
  StepSampler& step_sampler() { return step_sampler_; }
  void set_broker_disconnected(bool disconnected) { broker_disconnected_ = disconnected; }
  RunningRequests& running_requests() { return running_requests_; }
  LeaseTable& broker_table() { return table_; }
  const WorkerSegmentReader& worker_segment() const { return worker_segment_; }
  const TableReader& table() const { return reader_; }
  /// Of all threads of the backend.
  std::uint64_t units_run() const;
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  AdapterDouble& adapters() { return adapters_; }
  const ModelConfig& config() const { return config_; }
  RequestOutcome& outcome(const std::string& id) { return outcomes_[id]; }
  /// How the request ended. Throws unless it ended exactly once.
  const Completed& completion(const std::string& id) const;
  void clear_outcomes();
  /// One entry for each completion reported through the observer: whether `step` was running.
  std::vector<bool> early_completions() const;

  void completed_early(const Completed& completed, const events::ForwardRevoked&,
                       TimePoint) noexcept override;
  void lease_found_revoked(const events::ForwardRevoked&, TimePoint) noexcept override {}
  void refusing_unit_ended() noexcept override {}

 private:
  LeaseId next_lease();
  void load_model();
  std::shared_ptr<Proposer> make_proposer();
  GateDependencies gate_dependencies();
  std::unique_ptr<Backend> make_backend();
  void load_part(const GgufFile& file, const WeightsPart& part);
  std::shared_ptr<void> reach(Leased<const std::byte> at, std::size_t size_bytes) const;
  Weights::MappedPart hold_part(std::size_t part) const;

  RigOptions options_;
  std::atomic<bool> broker_disconnected_{false};
  ManualClock clock_;
  LeaseTable table_;
  TableReader reader_;
  WorkerSegmentReader worker_segment_;
  WorkerSegmentWriter segment_writer_;
  RunningRequests running_requests_;
  StepSampler step_sampler_;
  ModelConfig config_{};
  WeightsPlan plan_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<MemoryObject> weights_memory_;  // [parts]
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<ThreadGate> engine_gate_;
  std::unique_ptr<RigDraft> draft_;
  AdapterDouble adapters_;
  std::map<LeaseId, std::unique_ptr<RigAdapter>> adapter_memory_;
  std::unique_ptr<Engine> engine_;
  // Behind the engine, whose mappings they name: memory is unregistered before it is unmapped.
  mutable std::map<std::size_t, std::shared_ptr<void>> weights_registration_;  // by part
  std::map<LeaseId, std::vector<std::shared_ptr<void>>> extents_registration_;
  std::vector<LeaseId> engine_leases_;  // [parts]
  std::uint32_t next_slot_ = 0;
  std::uint64_t next_extent_ = 1;
  std::map<LeaseId, std::map<ExtentId, MemoryObject>> extents_;
  std::map<std::string, RequestOutcome> outcomes_;
  mutable std::mutex mutex_;
  std::vector<bool> early_completions_;
  std::atomic<bool> in_step_{false};
  double step_cpu_ns_ = 0;
};

}  // namespace leasehold::testing

#include "tests/support/engine_rig.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/reference/reference_backend.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/support/block_conservation.hpp"
#include "tests/support/required.hpp"
#include "tests/support/rig_adapter.hpp"
#include "tests/support/rig_draft.hpp"
#include "worker/engine/gate_numbers.hpp"
#include "worker/model/weights.hpp"

namespace leasehold::testing {
namespace {

constexpr WorkerId kWorker{0};
constexpr std::uint32_t kSlots = 256;

}  // namespace

EngineRig::EngineRig(RigOptions options)
    : options_(std::move(options)),
      table_(required(LeaseTable::create(kSlots))),
      reader_(options_.one_mapping ? TableReader::in_process(table_)
                                   : required(TableReader::attach(required(table_.reader_fd())))),
      worker_segment_(required(WorkerSegmentReader::create())),
      segment_writer_(options_.one_mapping ? WorkerSegmentWriter::in_process(worker_segment_)
                                           : required(WorkerSegmentWriter::attach(
                                                 required(worker_segment_.writer_fd())))) {
  load_model();
}

EngineRig::~EngineRig() = default;

void EngineRig::load_model() {
  const GgufFile file = required(GgufFile::open(options_.model_path));
  config_ = required(read_config(file));
  plan_ = make_weights_plan(required(make_weights_layout(file, config_, options_.arithmetic)),
                            options_.weights_scope);
  tokenizer_ = std::make_unique<Tokenizer>(required(Tokenizer::from_metadata(file)));
  if (!options_.draft_path.empty())
    draft_ = std::make_unique<RigDraft>(options_.draft_path, options_.draft_context, options_);
  backend_ = make_backend();
  engine_gate_ =
      std::make_unique<ThreadGate>(make_gates(gate_dependencies(), kMaxGateThreads - 1, 1).front());
  for (const WeightsPart& part : plan_.parts) load_part(file, part);
  engine_ =
      std::make_unique<Engine>(EngineConfig{.model = config_,
                                            .kv_type = options_.kv_type,
                                            .limits = options_.limits,
                                            .masks = options_.masks},
                               Engine::Dependencies{.backend = backend_.get(),
                                                    .table = &reader_,
                                                    .running_requests = &running_requests_,
                                                    .engine_gate = engine_gate_.get(),
                                                    .observer = this,
                                                    .clock = &clock_,
                                                    .broker_disconnected = &broker_disconnected_,
                                                    .tokenizer = tokenizer_.get(),
                                                    .sampler = &step_sampler_,
                                                    .proposer = make_proposer()});
  engine_->submissions().adapter_waits().lend(adapters_);
  engine_->bind_weights(map_weights());
  engine_->prepare_steps();
}

std::shared_ptr<Proposer> EngineRig::make_proposer() {
  if (options_.make_proposer) return options_.make_proposer();
  if (!draft_) return nullptr;
  return draft_->load(
      {.backend = backend_.get(), .engine_gate = engine_gate_.get(), .observer = this}, reader_,
      {next_lease(), next_lease()});
}

GateDependencies EngineRig::gate_dependencies() {
  return {.worker = kWorker,
          .table = &reader_,
          .segment = &segment_writer_,
          .stops = &running_requests_.stops(),
          .probe = options_.probe};
}

std::unique_ptr<Backend> EngineRig::make_backend() {
  BackendLimits limits = Engine::backend_limits(config_, options_.limits);
  if (draft_) limits = DraftProposer::backend_limits(limits, draft_->config());
  if (options_.make_backend)
    return options_.make_backend(limits, make_gates(gate_dependencies(), 0, 1).front());
  if (options_.reference)
    return std::make_unique<ReferenceBackend>(limits,
                                              make_gates(gate_dependencies(), 0, 1).front());
  return required(CpuBackend::create(limits, make_gates(gate_dependencies(), 0, options_.threads)));
}

std::shared_ptr<void> EngineRig::reach(Leased<const std::byte> at, std::size_t size_bytes) const {
  return options_.reach ? options_.reach(at, size_bytes) : nullptr;
}

void EngineRig::load_part(const GgufFile& file, const WeightsPart& part) {
  const std::uint64_t size_bytes = part.layout.size_bytes;
  weights_memory_.push_back(required(MemoryObject::create(
      {.name = "rig-weights", .size_bytes = size_bytes, .final_seals = false})));
  engine_leases_.push_back(next_lease());
  NullRefusalListener ignored;
  GateSet gates(next_gate_number(), running_requests_.stops(), ignored);
  gates.add_engine_lease(required(reader_.dependency(engine_leases_.back())));
  gates.add_sequence({});
  const LeasedMapping region =
      required(LeasedMapping::map(weights_memory_.back().fd(), size_bytes, MapAccess::ReadWrite));
  const std::shared_ptr<void> reached = reach(region.base(), size_bytes);
  const Result<void> filled = copy_weights(
      file, part.layout, {.region = &region, .gates = &gates, .backend = backend_.get()}, {});
  if (!filled) throw std::runtime_error(filled.error().detail);
}

Weights::MappedPart EngineRig::hold_part(std::size_t part) const {
  const std::uint64_t size_bytes = plan_.parts[part].layout.size_bytes;
  Weights::MappedPart mapped_part{
      .mapping = required(LeasedMapping::map(required(weights_memory_[part].open_read_only()),
                                             size_bytes, MapAccess::ReadOnly)),
      .lease = required(reader_.dependency(engine_leases_[part]))};
  weights_registration_[part] = reach(mapped_part.mapping.base(), size_bytes);
  return mapped_part;
}

Weights EngineRig::map_weights() const {
  std::vector<Weights::MappedPart> mapped_parts;
  for (std::size_t part = 0; part < plan_.parts.size(); ++part) {
    mapped_parts.push_back(hold_part(part));
  }
  return required(Weights::bind(plan_, config_, std::move(mapped_parts)));
}

LeaseId EngineRig::next_lease() {
  while (std::ranges::find(engine_leases_, next_slot_ % kSlots, &LeaseId::slot) !=
         engine_leases_.end()) {
    ++next_slot_;
  }
  const std::uint32_t slot = next_slot_++ % kSlots;
  const LeaseId lease{slot, table_.word(slot).generation() + 1};
  table_.grant(lease, TimePoint{});
  return lease;
}

std::size_t EngineRig::restore_weights() {
  Weights& weights = engine_->weights().get();
  std::size_t restored = 0;
  while (const auto revoked_part = weights.first_revoked_part()) {
    LeaseId& lease = engine_leases_[*revoked_part];
    if (table_.word(lease.slot).state() != LeaseState::Fenced) fence(lease);
    lease = next_lease();
    if (!weights.restore(*revoked_part, hold_part(*revoked_part)))
      throw std::runtime_error("restore failed");
    ++restored;
  }
  engine_->prepare_steps();
  return restored;
}

LeaseId EngineRig::grant(const std::string& tenant, std::uint32_t extents,
                         std::uint32_t max_concurrent) {
  const LeaseId lease = next_lease();
  engine_->add_lease({.lease = lease, .tenant = TenantId{tenant}});
  engine_->submissions().set_quota(
      {.tenant = {tenant}, .max_concurrent = max_concurrent, .max_blocks = 1u << 20});
  grow(lease, extents);
  return lease;
}

LeaseId EngineRig::grant_adapter() {
  const LeaseId lease = next_lease();
  MemoryObject object =
      required(MemoryObject::create({.name = "rig-adapter", .size_bytes = options_.extent_bytes}));
  const ExtentId id{next_extent_++};
  LeasedMapping mapping =
      required(LeasedMapping::map(object.fd(), options_.extent_bytes, MapAccess::ReadWrite));
  extents_registration_[lease].push_back(reach(mapping.base(), options_.extent_bytes));
  engine_->memory().add(lease, id, std::move(mapping));
  extents_[lease].emplace(id, std::move(object));
  return lease;
}

std::pair<LeaseId, Engine::Adopted> EngineRig::adopt(LeaseId old, const std::string& tenant,
                                                     bool is_revoked) {
  auto kept = extents_.extract(old);
  drop(old);
  const LeaseId lease = grant(tenant, 0);
  for (auto& [id, object] : kept.mapped()) {
    LeasedMapping mapping =
        required(LeasedMapping::map(object.fd(), options_.extent_bytes, MapAccess::ReadWrite));
    extents_registration_[lease].push_back(reach(mapping.base(), options_.extent_bytes));
    engine_->add_extent(lease, id, std::move(mapping));
    extents_[lease].emplace(id, std::move(object));
  }
  if (is_revoked) revoke(lease);
  return {lease, engine_->adopt(lease)};
}

LeaseId EngineRig::grant_shared() {
  const LeaseId lease = next_lease();
  engine_->add_lease({.lease = lease, .tenant = public_owner(), .is_shared = true});
  grow(lease);
  return lease;
}

LeaseId EngineRig::publish(std::vector<TokenId> text, const std::string& adapter) {
  const LeaseId lease = grant_shared();
  const Result<void> queued = engine_->fill(lease, std::move(text), {.name = adapter});
  if (!queued) throw std::runtime_error(queued.error().detail);
  std::vector<PrefixFilled> filled;
  while (filled.empty()) {
    (void)required(step());
    filled = engine_->take_filled();
  }
  (void)required(filled.front().blocks);
  return lease;
}

AdapterUse EngineRig::load_adapter(const std::string& name, std::uint64_t seed,
                                   std::uint32_t rank) {
  const LeaseId lease = next_lease();
  RigAdapter& made =
      *adapter_memory_.emplace(lease, std::make_unique<RigAdapter>(config_, seed, rank))
           .first->second;
  extents_registration_[lease].push_back(reach(made.mapping.base(), made.size_bytes));
  ContentDigest digest;
  std::memcpy(digest.bytes.data(), &seed, sizeof(seed));
  return adapters_.loaded[name] =
             std::make_shared<const LoadedAdapter>(LoadedAdapter{.name = name,
                                                                 .version = 1,
                                                                 .digest = digest,
                                                                 .lease = lease,
                                                                 .size_bytes = made.size_bytes,
                                                                 .matrices = made.matrices});
}

Result<void> EngineRig::submit(const PromptRequest& request) {
  Result<void> queued = fail(Errc::UnknownAdapter, "the adapter is not loaded");
  engine_->submissions().submit(request, [&queued](const Result<AdapterUse>& use) {
    queued = use ? Result<void>() : std::unexpected(use.error());
  });
  return queued;
}

void EngineRig::grow(LeaseId lease, std::uint32_t extents, wire::MemoryPool pool) {
  const bool is_small = pool == wire::MemoryPool::Swap && options_.swap_extent_bytes > 0;
  const std::size_t size_bytes = is_small ? options_.swap_extent_bytes : options_.extent_bytes;
  for (std::uint32_t i = 0; i < extents; ++i) {
    MemoryObject object =
        required(MemoryObject::create({.name = "rig-extent", .size_bytes = size_bytes}));
    const ExtentId id{next_extent_++};
    Mapping memory = required(Mapping::map(object.fd(), size_bytes, MapAccess::ReadWrite));
    if (options_.prefaults_extents) required(memory.prefault(MapAccess::ReadWrite));
    LeasedMapping mapping(std::move(memory), MapAccess::ReadWrite);
    extents_registration_[lease].push_back(reach(mapping.base(), size_bytes));
    engine_->add_extent(lease, id, std::move(mapping), pool);
    extents_[lease].emplace(id, std::move(object));
  }
}

void EngineRig::revoke(LeaseId lease, RevokeReason reason) {
  const LeaseTable::LeaseChange flip{lease, LeaseState::Revoked, reason};
  table_.store_words(kWorker, {&flip, 1}, clock_.now());
}

void EngineRig::fence(LeaseId lease) {
  const LeaseTable::LeaseChange flip{lease, LeaseState::Fenced, table_.word(lease.slot).reason()};
  table_.store_words(kWorker, {&flip, 1}, clock_.now());
}

void EngineRig::drop(LeaseId lease) {
  if (table_.word(lease.slot).state() != LeaseState::Fenced) fence(lease);
  extents_registration_.erase(lease);
  std::erase_if(adapters_.loaded, [&](const auto& entry) { return entry.second->lease == lease; });
  engine_->drop_lease(lease);
  extents_.erase(lease);
  adapter_memory_.erase(lease);
}

std::vector<std::byte> EngineRig::bytes_of(LeaseId lease, std::span<const BlockId> blocks) {
  const std::uint64_t block_size = engine_->kv_block_size_bytes();
  std::vector<std::byte> bytes;
  for (const BlockId block : blocks) {
    const MemoryObject& extent = extents_.at(lease).at(block.extent);
    const Mapping mapping =
        required(Mapping::map(extent.fd(), options_.extent_bytes, MapAccess::ReadOnly));
    const std::byte* from = mapping.data() + block.index * block_size;
    bytes.insert(bytes.end(), from, from + block_size);
  }
  return bytes;
}

std::vector<TokenId> EngineRig::encode(const std::string& text) const {
  return required(tokenizer_->encode(text));
}

const Sequence* EngineRig::sequence(const std::string& id) const {
  for (const auto& sequence : engine_->scheduler().running().all()) {
    if (sequence->request.engine_request_id.value == id) return sequence.get();
  }
  return nullptr;
}

std::uint64_t EngineRig::units_run() const {
  std::uint64_t units = 0;
  for (const std::uint64_t of_thread : backend_->units_run()) units += of_thread;
  return units;
}

const Completed& EngineRig::completion(const std::string& id) const {
  const auto& completions = outcomes_.at(id).completions;
  if (completions.size() != 1) throw std::logic_error(id + " has not ended exactly once");
  return completions[0];
}

void EngineRig::clear_outcomes() {
  const std::scoped_lock lock(mutex_);
  outcomes_.clear();
  early_completions_.clear();
}

PromptRequest EngineRig::request(const std::string& tenant, LeaseId lease, const std::string& id,
                                 std::vector<TokenId> prompt, std::uint32_t max_tokens) const {
  return {.tenant = TenantId{tenant},
          .lease = lease,
          .engine_request_id = RequestId{id},
          .prompt = std::move(prompt),
          .sampling = {.ignore_eos = true},
          .max_emitted_tokens = max_tokens};
}

Result<StepReport> EngineRig::step() {
  const double begin_ns = bench::thread_time_ns();
  engine_->end_stopped();
  in_step_ = true;
  Result<StepReport> report = engine_->step();
  in_step_ = false;
  step_cpu_ns_ += bench::thread_time_ns() - begin_ns;
  check_block_conservation(engine_->scheduler());
  if (!report) return report;
  const auto file = [this](const auto& event) {
    outcomes_[event.engine_request_id.value].add(event);
  };
  for (const SchedulerEvent& event : report->events) {
    std::visit(file, event);
    if (const auto* prompt = std::get_if<PromptLogprobs>(&event); prompt && options_.reads_logprobs)
      engine_->scheduler().running().logprobs_taken(prompt->engine_request_id, kMaxUntakenLogprobs);
  }
  return report;
}

void EngineRig::run(std::uint32_t max_steps) {
  for (std::uint32_t i = 0; i < max_steps && engine_->scheduler().has_work(); ++i) {
    const Result<StepReport> report = step();
    if (!report) throw std::runtime_error(report.error().detail);
    if (!report->ran && !report->awaits_masks && report->events.empty()) return;
  }
}

void EngineRig::completed_early(const Completed& completed, const events::ForwardRevoked&,
                                TimePoint) noexcept {
  const std::scoped_lock lock(mutex_);
  early_completions_.push_back(in_step_);
  outcomes_[completed.engine_request_id.value].add(completed);
}

std::vector<bool> EngineRig::early_completions() const {
  const std::scoped_lock lock(mutex_);
  return early_completions_;
}

}  // namespace leasehold::testing

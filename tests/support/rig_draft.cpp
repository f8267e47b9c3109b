#include "tests/support/rig_draft.hpp"

#include <stdexcept>

#include "tests/support/required.hpp"
#include "worker/engine/gate_numbers.hpp"

namespace leasehold::testing {
namespace {

DraftProposer::Config config_of(const GgufFile& file, std::uint32_t context,
                                const RigOptions& options) {
  DraftProposer::Config config{.model = required(read_config(file)),
                               .kv_type = options.kv_type,
                               .max_batch_size = options.limits.max_batch_size,
                               .speculate = options.limits.speculate};
  if (context != 0) config.model.n_context = context;
  return config;
}

MemoryObject memory_of(const char* name, std::uint64_t size_bytes) {
  return required(
      MemoryObject::create({.name = name, .size_bytes = size_bytes, .final_seals = false}));
}

}  // namespace

RigDraft::RigDraft(const std::string& path, std::uint32_t context, const RigOptions& options)
    : file_(required(GgufFile::open(path))),
      config_(config_of(file_, context, options)),
      plan_(
          make_weights_plan(required(make_weights_layout(file_, config_.model, options.arithmetic)),
                            WeightsScope::Model)),
      weights_memory_(memory_of("rig-draft-weights", plan_.size_bytes())),
      memory_(memory_of("rig-draft-memory", config_.memory_bytes())) {}

std::shared_ptr<DraftProposer> RigDraft::load(DraftProposer::Dependencies dependencies,
                                              const TableReader& table,
                                              std::array<LeaseId, 2> leases) {
  leases_ = leases;
  const LeaseDependency weights = required(table.dependency(leases_[OfWeights]));
  const StopFlags no_stops;
  NullRefusalListener ignored;
  GateSet gates(next_gate_number(), no_stops, ignored);
  gates.add_engine_lease(weights);
  gates.add_sequence({});
  const WeightsLayout& layout = plan_.parts[0].layout;
  {
    const LeasedMapping region =
        required(LeasedMapping::map(weights_memory_.fd(), layout.size_bytes, MapAccess::ReadWrite));
    const Result<void> filled = copy_weights(
        file_, layout, {.region = &region, .gates = &gates, .backend = dependencies.backend}, {});
    if (!filled) throw std::runtime_error(filled.error().detail);
  }
  dependencies.on_lost = [this](LeaseId lease) {
    ++losses_;
    lost_ = lease;
  };
  proposer_ = std::make_shared<DraftProposer>(config_, std::move(dependencies));
  std::vector<Weights::MappedPart> parts;
  parts.push_back(
      {.mapping = required(LeasedMapping::map(required(weights_memory_.open_read_only()),
                                              layout.size_bytes, MapAccess::ReadOnly)),
       .lease = weights});
  proposer_->bind(required(Weights::bind(plan_, config_.model, std::move(parts))),
                  {.mapping = required(LeasedMapping::map(memory_.fd(), config_.memory_bytes(),
                                                          MapAccess::ReadWrite)),
                   .lease = required(table.dependency(leases_[OfMemory]))});
  return proposer_;
}

std::vector<std::byte> RigDraft::memory() const {
  const Mapping mapping =
      required(Mapping::map(memory_.fd(), config_.memory_bytes(), MapAccess::ReadOnly));
  return {mapping.data(), mapping.data() + mapping.size_bytes()};
}

}  // namespace leasehold::testing

#include "tests/checks/local_model/local_model.hpp"

#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/expects.hpp"
#include "ipc/region/memory_object.hpp"
#include "ipc/region/region_mapper.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/model/kv_type.hpp"
#include "kernels/reference/reference_backend.hpp"
#include "tests/checks/local_model/block_order.hpp"
#include "tests/checks/local_model/local_leases.hpp"
#include "tests/support/state_copies.hpp"
#include "worker/engine/worker_gates.hpp"
#include "worker/kv/lease_memory.hpp"
#include "worker/model/transformer.hpp"

namespace leasehold {
namespace {

constexpr LeaseId kEngineLease{.slot = 0, .generation = 1};
/// The lease that owns all blocks. Each sequence also has a lease of its own, which the gate
/// checks.
constexpr LeaseId kTenantLease{.slot = 1, .generation = 1};
constexpr std::uint32_t kFirstSequenceSlot = 1;
constexpr std::uint32_t kFirstAdapterSlot = kFirstSequenceSlot + kMaxStepSequences;
constexpr ExtentId kExtent{1};
constexpr ExtentId kSwapExtent{2};

constexpr LeaseId adapter_lease(std::uint32_t adapter) {
  return {.slot = kFirstAdapterSlot + adapter, .generation = 1};
}

std::uint32_t blocks_each(const LocalOptions& options) {
  return (options.positions + KvLayout::kBlockTokens - 1) / KvLayout::kBlockTokens;
}

Transformer::Limits step_limits(const LocalOptions& options) {
  return {.max_rows = options.max_rows,
          .max_logit_rows = options.max_rows,
          .max_adapter_rank = max_rank(options.adapters)};
}

BackendLimits limits_of(const LocalOptions& options, const ModelConfig& model) {
  BackendLimits limits = Transformer::backend_limits(model, step_limits(options));
  limits.max_context = blocks_each(options) * KvLayout::kBlockTokens;
  return limits;
}

}  // namespace

struct LocalModel::Impl {
  LocalOptions options;
  ModelConfig config;
  LocalLeases shared;
  StopFlags stops = {};
  NullRefusalListener null_listener = {};
  std::unique_ptr<Backend> backend = nullptr;
  std::unique_ptr<Transformer> transformer = nullptr;
  WeightsPlan plan = {};  // outlives the weights
  std::optional<Weights> weights = std::nullopt;
  std::optional<LeaseMemory> memory = std::nullopt;
  std::vector<std::vector<Leased<std::byte>>> tables = {};  // [sequences][n_groups, blocks_each]
  std::optional<MemoryObject> swap = std::nullopt;
  std::vector<std::vector<Leased<std::byte>>> swap_tables = {};  // as `tables`
  std::vector<StateCopies> states = {};                          // [sequences]
  std::vector<std::uint32_t> positions = {};  // [sequences], position of the next row
  std::vector<LeaseId> leases = {};           // [sequences]
  LocalAdapters adapters = {};
  std::uint64_t step = 0;
  SequenceMask live = 0;

  Result<void> make_backend();
  Result<void> load_weights(const GgufFile& file);
  Result<LeasedMapping> load_weights_to_host(const GgufFile& file);
  Result<LeasedMapping> load_weights_to_device(const GgufFile& file);
  Result<void> fill(const GgufFile& file, const LeasedMapping& region);
  Result<LeasedMapping> allocate_blocks(std::size_t size_bytes) const;
  RefusalListener& listener() {
    return options.listener != nullptr ? *options.listener : null_listener;
  }
  Result<void> allocate_kv();
  Result<void> allocate_swap();
  Result<void> load_adapters();
  using Blocks = std::vector<Leased<std::byte>>;
  Result<void> copy(std::uint32_t sequence, std::uint32_t positions, const Blocks& to,
                    const Blocks& from);
  Result<void> check_capacity(std::span<const LocalRow> rows) const;
  BlockTableView table_of(std::uint32_t group, std::uint32_t sequence,
                          std::uint32_t position) const;
};

Result<void> LocalModel::Impl::make_backend() {
  const BackendLimits limits = limits_of(options, config);
  auto gates =
      make_gates({.worker = WorkerId{0},
                  .table = &shared.reader,
                  .segment = &shared.writer,
                  .stops = &stops,
                  .probe = options.probe},
                 0, options.reference || options.placement != nullptr ? 1 : options.threads);
  if (options.placement != nullptr) {
    backend = TRY(options.placement->make_backend(limits, gates.front()));
  } else if (options.reference) {
    backend = std::make_unique<ReferenceBackend>(limits, gates.front());
  } else {
    backend = TRY(CpuBackend::create(limits, std::move(gates), options.simd));
  }
  transformer =
      std::make_unique<Transformer>(config, options.kv_type, step_limits(options), *backend);
  return {};
}

Result<void> LocalModel::Impl::fill(const GgufFile& file, const LeasedMapping& region) {
  GateSet gates(~std::uint64_t{0}, stops, null_listener);
  gates.add_engine_lease(TRY(shared.reader.dependency(kEngineLease)));
  gates.add_sequence({});
  return copy_weights(file, plan.parts.front().layout,
                      {.region = &region, .gates = &gates, .backend = backend.get()}, {});
}

/// Fills a memory object and maps it read-only, in huge pages as a worker does.
Result<LeasedMapping> LocalModel::Impl::load_weights_to_host(const GgufFile& file) {
  const std::size_t size_bytes = plan.parts.front().layout.size_bytes;
  MemoryObject object = TRY(MemoryObject::create(
      {.name = "local-weights", .size_bytes = size_bytes, .final_seals = false}));
  UniqueFd read_only = TRY(object.open_read_only());
  {
    const LeasedMapping region =
        TRY(host_mapper().map(std::move(object).release(), size_bytes, MapAccess::ReadWrite));
    TRY(fill(file, region));
  }
  return host_mapper().map(std::move(read_only), size_bytes, MapAccess::ReadOnly);
}

Result<LeasedMapping> LocalModel::Impl::load_weights_to_device(const GgufFile& file) {
  const WeightsLayout& layout = plan.parts.front().layout;
  std::optional<LeasedMapping> made = TRY(options.placement->make_weights(layout));
  if (made) return *std::move(made);
  LeasedMapping region = TRY(options.placement->allocate(layout.size_bytes));
  TRY(fill(file, region));
  return region;
}

Result<void> LocalModel::Impl::load_weights(const GgufFile& file) {
  plan = make_weights_plan(TRY(make_weights_layout(file, config, options.arithmetic)),
                           WeightsScope::Model);
  LeasedMapping mapping =
      TRY(options.placement != nullptr ? load_weights_to_device(file) : load_weights_to_host(file));
  const LeaseDependency lease = TRY(shared.reader.dependency(kEngineLease));
  std::vector<Weights::MappedPart> mapped_parts;
  mapped_parts.push_back({.mapping = std::move(mapping), .lease = lease});
  weights.emplace(TRY(Weights::bind(plan, config, std::move(mapped_parts))));
  return {};
}

Result<LeasedMapping> LocalModel::Impl::allocate_blocks(std::size_t size_bytes) const {
  if (options.placement != nullptr) return options.placement->allocate(size_bytes);
  MemoryObject object = TRY(MemoryObject::create({.name = "local-kv", .size_bytes = size_bytes}));
  return host_mapper().map(std::move(object).release(), size_bytes, MapAccess::ReadWrite);
}

Result<void> LocalModel::Impl::allocate_kv() {
  memory.emplace(transformer->kv_layout().block_size_bytes());
  const std::uint32_t each = blocks_each(options);
  const std::uint32_t n_groups = transformer->kv_layout().n_groups();
  const std::uint32_t n_state = transformer->state_layout().blocks();
  const std::uint32_t n_blocks = options.sequences * (n_groups * each + 2 * n_state);
  LeasedMapping mapping = TRY(allocate_blocks(n_blocks * memory->block_size_bytes()));
  memory->add(kTenantLease, kExtent, std::move(mapping));
  const std::vector<std::uint32_t> order = block_order(n_blocks, options.scatter_seed);
  auto next = order.begin();
  const auto take = [&](std::uint32_t n) -> Result<std::vector<Leased<std::byte>>> {
    std::vector<Leased<std::byte>> blocks;
    for (std::uint32_t i = 0; i < n; ++i)
      blocks.push_back(TRY(memory->address(kTenantLease, {kExtent, *next++})));
    return blocks;
  };
  for (std::uint32_t s = 0; s < options.sequences; ++s) {
    tables.push_back(TRY(take(n_groups * each)));
    std::vector<Leased<std::byte>> read = TRY(take(n_state));
    states.emplace_back(std::move(read), TRY(take(n_state)));
    leases.push_back({.slot = kFirstSequenceSlot + s, .generation = 1});
    shared.table.grant(leases.back(), {});
  }
  positions.assign(options.sequences, 0);
  return {};
}

Result<void> LocalModel::Impl::load_adapters() {
  adapters = LocalAdapters(options.adapters, weights->layers());
  for (std::uint32_t i = 0; i < options.adapters.size(); ++i)
    shared.table.grant(adapter_lease(i), {});
  GateSet gates(++step, stops, listener());
  gates.add_engine_lease(TRY(shared.reader.dependency(kEngineLease)));
  gates.add_sequence({});
  LeasedMapping of_adapters = TRY(allocate_blocks(adapters.size_bytes()));
  return adapters.fill(std::move(of_adapters), *backend, gates);
}

Result<void> LocalModel::Impl::allocate_swap() {
  const std::uint32_t each = transformer->kv_layout().n_groups() * blocks_each(options);
  const std::size_t size_bytes = options.sequences * each * memory->block_size_bytes();
  swap = TRY(MemoryObject::create({.name = "local-swap", .size_bytes = size_bytes}));
  memory->add(kTenantLease, kSwapExtent,
              TRY(LeasedMapping::map(swap->fd(), size_bytes, MapAccess::ReadWrite)));
  for (std::uint32_t s = 0; s < options.sequences; ++s) {
    swap_tables.emplace_back();
    for (std::uint32_t i = 0; i < each; ++i)
      swap_tables.back().push_back(TRY(memory->address(kTenantLease, {kSwapExtent, s * each + i})));
  }
  return {};
}

Result<void> LocalModel::Impl::copy(std::uint32_t sequence, std::uint32_t copied_positions,
                                    const Blocks& to, const Blocks& from) {
  std::vector<LeasedCopy> copies;
  const std::uint32_t each = blocks_each(options);
  for (std::uint32_t at = 0; at < to.size(); at += each)
    for (std::uint32_t i = 0; i * KvLayout::kBlockTokens < copied_positions; ++i)
      copies.push_back({.to = to.at(at + i), .from = from.at(at + i)});
  GateSet gates(++step, stops, listener());
  gates.add_engine_lease(TRY(shared.reader.dependency(kEngineLease)));
  const LeaseDependency lease = TRY(shared.reader.dependency(leases[sequence]));
  gates.add_sequence({&lease, 1});
  const LaunchStatus status = backend->copy_blocks(
      {.gates = &gates, .rows = {}},
      {.sequence = 0, .copies = copies, .block_size_bytes = memory->block_size_bytes()});
  if (status.live == 0) return fail(Errc::LeaseRevoked, "a copy stopped; its lease was revoked");
  return {};
}

/// The table of a sequence whose next row is at `position`; in groups with a window, the blocks
/// that later rows read.
BlockTableView LocalModel::Impl::table_of(std::uint32_t group, std::uint32_t sequence,
                                          std::uint32_t position) const {
  const std::uint32_t each = blocks_each(options);
  const std::uint32_t first =
      group > 0 ? transformer->kv_layout().window().first_block(position) : 0;
  return {std::span(tables[sequence]).subspan(std::size_t{group} * each + first, each - first),
          first};
}

LocalModel::LocalModel(std::unique_ptr<Impl> parts) : impl_(std::move(parts)) {}
LocalModel::~LocalModel() = default;

Result<std::unique_ptr<LocalModel>> LocalModel::load(LocalOptions options) {
  const GgufFile file = TRY(GgufFile::open(options.model_path));
  ModelConfig config = TRY(read_config(file));
  if (options.modify_config) options.modify_config(config);
  TRY(kv_layout_of(config, options.kv_type));
  LocalLeases shared = TRY(
      LocalLeases::create(kFirstAdapterSlot + static_cast<std::uint32_t>(options.adapters.size())));
  shared.table.grant(kEngineLease, {});
  std::unique_ptr<Impl> parts(new Impl{
      .options = std::move(options), .config = std::move(config), .shared = std::move(shared)});
  TRY(parts->make_backend());
  TRY(parts->load_weights(file));
  TRY(parts->allocate_kv());
  if (parts->options.has_swap) TRY(parts->allocate_swap());
  if (!parts->options.adapters.empty()) TRY(parts->load_adapters());
  return std::unique_ptr<LocalModel>(new LocalModel(std::move(parts)));
}

const ModelConfig& LocalModel::config() const {
  return impl_->config;
}

Result<void> LocalModel::Impl::check_capacity(std::span<const LocalRow> rows) const {
  std::vector<std::uint32_t> after = positions;
  for (const LocalRow& row : rows) {
    expects(row.sequence < after.size(), "the row belongs to a sequence of the model");
    if (++after[row.sequence] > options.positions)
      return fail(Errc::PoolExhausted,
                  "a sequence has no free position; load the model with more positions");
  }
  return {};
}

Result<void> LocalModel::forward(std::span<const LocalRow> rows) {
  Impl& parts = *impl_;
  TRY(parts.check_capacity(rows));
  GateSet gates(++parts.step, parts.stops, parts.listener());
  gates.add_engine_lease(TRY(parts.shared.reader.dependency(kEngineLease)));
  std::vector<RowRef> refs;
  std::vector<TokenId> tokens;
  std::vector<RowRef> sequences;  // in the order of the gate set, each at its first row
  std::vector<StateTableView> state_tables;
  std::vector<std::uint32_t> logit_rows;
  for (const LocalRow& row : rows) {
    if (refs.empty() || row.sequence != rows[refs.size() - 1].sequence) {
      std::vector leases{TRY(parts.shared.reader.dependency(parts.leases[row.sequence]))};
      if (const auto adapter = parts.adapters.chosen(row.sequence))
        leases.push_back(TRY(parts.shared.reader.dependency(adapter_lease(*adapter))));
      gates.add_sequence(leases);
      sequences.push_back({row.sequence, parts.positions[row.sequence]});
      state_tables.push_back(parts.states[row.sequence].next());
    }
    if (row.wants_logits) logit_rows.push_back(static_cast<std::uint32_t>(refs.size()));
    refs.push_back({gates.sequence_count() - 1, parts.positions[row.sequence]++});
    tokens.push_back(row.token);
  }
  std::vector<BlockTableView> tables;
  for (std::uint32_t group = 0; group < parts.transformer->kv_layout().n_groups(); ++group)
    for (const RowRef& at : sequences)
      tables.push_back(parts.table_of(group, at.sequence, at.position));
  const std::vector<const AdapterMatrices*> adapters = parts.adapters.of(sequences);
  const LaunchStatus status =
      parts.transformer->forward(*parts.weights, {.gates = &gates,
                                                  .rows = refs,
                                                  .tokens = tokens,
                                                  .block_tables = tables,
                                                  .logit_rows = logit_rows,
                                                  .state_tables = state_tables,
                                                  .adapters = adapters});
  parts.live = status.live;
  if (const auto fault = parts.backend->fault()) return std::unexpected(*fault);
  return {};
}

std::span<const float> LocalModel::logits(std::uint32_t i) const {
  return impl_->transformer->logits(i);
}

std::optional<TopLogits> LocalModel::top_logits(std::uint32_t i) const {
  return impl_->transformer->top_logits(i);
}

SequenceMask LocalModel::live() const {
  return impl_->live;
}

void LocalModel::restart(std::uint32_t sequence, std::uint32_t position) {
  expects(position < impl_->options.positions, "the position is within the sequence");
  StateCopies& state = impl_->states[sequence];
  expects(position == 0 || state.empty(), "a recurrent state is only known at its last position");
  state.forget();
  impl_->positions[sequence] = position;
}

Result<void> LocalModel::swap_out(std::uint32_t sequence, std::uint32_t positions) {
  return impl_->copy(sequence, positions, impl_->swap_tables[sequence], impl_->tables[sequence]);
}

Result<void> LocalModel::swap_in(std::uint32_t sequence, std::uint32_t positions) {
  return impl_->copy(sequence, positions, impl_->tables[sequence], impl_->swap_tables[sequence]);
}

Result<void> LocalModel::clear_swap() {
  return impl_->swap->punch();
}

void LocalModel::use_adapter(std::uint32_t sequence, std::optional<std::uint32_t> adapter) {
  impl_->adapters.choose(sequence, adapter);
}

void LocalModel::revoke_adapter(std::uint32_t adapter) {
  impl_->shared.revoke(adapter_lease(adapter));
}

void LocalModel::revoke(std::uint32_t sequence) {
  impl_->shared.revoke(impl_->leases[sequence]);
}

void LocalModel::when_settled(std::move_only_function<void()> on_quiet) {
  const WorkerSegmentReader& segment = impl_->shared.segment;
  const WorkerSegmentReader::Snapshot seen = segment.snapshot();
  while (!segment.is_quiet_since(seen, Touches::TenantMemory)) std::this_thread::yield();
  impl_->backend->when_settled(SettleScope::TenantMemory, std::move(on_quiet));
}

void LocalModel::regrant(std::uint32_t sequence) {
  LeaseId& lease = impl_->leases[sequence];
  impl_->shared.store(lease, LeaseState::Fenced);
  ++lease.generation;
  impl_->shared.table.grant(lease, {});
}

Backend& LocalModel::backend() {
  return *impl_->backend;
}

std::uint64_t LocalModel::weights_bytes() const {
  return impl_->plan.size_bytes();
}

std::uint64_t LocalModel::units() const {
  const auto counts = impl_->backend->units_run();
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace leasehold

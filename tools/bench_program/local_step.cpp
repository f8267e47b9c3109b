#include "tools/bench_program/local_step.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ipc/region/memory_object.hpp"
#include "ipc/table/lease_table.hpp"
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_line.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "worker/engine/worker_gates.hpp"
#include "worker/kv/lease_memory.hpp"
#include "worker/model/transformer.hpp"

namespace leasehold::bench {
namespace {

constexpr LeaseId kEngineLease{.slot = 0, .generation = 1};
constexpr LeaseId kTenantLease{.slot = 1, .generation = 1};
constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kBlocks = 16;  // 256 positions
constexpr ExtentId kExtent{1};

}  // namespace

struct LocalStep::Parts {
  LeaseTable table;
  TableReader reader;
  LineReader line;
  LineWriter writer;
  StopBoard stops;
  Nobody nobody;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Transformer> transformer;
  WeightsPlan plan;  // outlives the weights
  std::optional<Weights> weights;
  std::optional<LeaseMemory> memory;
  std::uint64_t step = 0;

  Result<void> load_weights(const GgufFile& file, const ModelConfig& config);
  Result<void> make_room();
};

Result<void> LocalStep::Parts::load_weights(const GgufFile& file, const ModelConfig& config) {
  plan = cut_weights(TRY(plan_weights(file, config)), WeightsScope::Model);
  const WeightsLayout& layout = plan.parts.front().layout;
  const MemoryObject object = TRY(MemoryObject::create(
      {.name = "bench-weights", .size_bytes = layout.size_bytes, .final_seals = false}));
  GateSet gates(~std::uint64_t{0}, stops, nobody);
  gates.add_engine_lease(TRY(reader.dependency(kEngineLease)));
  gates.add_sequence({});
  {
    const LeasedMapping region =
        TRY(LeasedMapping::map(object.fd(), layout.size_bytes, MapAccess::ReadWrite));
    TRY(fill_weights(file, layout, region, gates, *backend, {}));
  }
  const UniqueFd read_only = TRY(object.open_read_only());
  std::vector<Weights::Holding> holdings;
  holdings.push_back(
      {.mapping = TRY(LeasedMapping::map(read_only, layout.size_bytes, MapAccess::ReadOnly)),
       .lease = TRY(reader.dependency(kEngineLease))});
  weights.emplace(TRY(Weights::bind(plan, config, std::move(holdings))));
  return {};
}

Result<void> LocalStep::Parts::make_room() {
  memory.emplace(transformer->kv_layout().block_size_bytes());
  const std::size_t size_bytes = kBlocks * memory->block_size_bytes();
  const MemoryObject object =
      TRY(MemoryObject::create({.name = "bench-extent", .size_bytes = size_bytes}));
  LeasedMapping mapping = TRY(LeasedMapping::map(object.fd(), size_bytes, MapAccess::ReadWrite));
  TRY(mapping.prefault());
  memory->add(kTenantLease, kExtent, std::move(mapping));
  return {};
}

LocalStep::LocalStep(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LocalStep::~LocalStep() = default;

Result<std::unique_ptr<LocalStep>> LocalStep::load(const std::string& model_path) {
  const GgufFile file = TRY(GgufFile::open(model_path));
  const ModelConfig config = TRY(read_config(file));
  LeaseTable table = TRY(LeaseTable::create(kSlots));
  table.grant(kEngineLease, {});
  table.grant(kTenantLease, {});
  UniqueFd table_fd = TRY(table.reader_fd());
  TableReader reader = TRY(TableReader::attach(std::move(table_fd)));
  LineReader line = TRY(LineReader::create());
  UniqueFd line_fd = TRY(line.writer_fd());
  LineWriter writer = TRY(LineWriter::attach(std::move(line_fd)));
  std::unique_ptr<Parts> parts(new Parts{.table = std::move(table),
                                         .reader = std::move(reader),
                                         .line = std::move(line),
                                         .writer = std::move(writer)});
  BackendLimits limits = backend_limits(config, 1);
  limits.max_context = kBlocks * KvLayout::kBlockTokens;
  parts->backend = TRY(CpuBackend::create(limits, make_gates({.worker = WorkerId{0},
                                                              .table = &parts->reader,
                                                              .line = &parts->writer,
                                                              .stops = &parts->stops},
                                                             0, 1)));
  parts->transformer = std::make_unique<Transformer>(
      config, KvType::F16, Transformer::Limits{.max_rows = 1, .max_logit_rows = 1},
      *parts->backend);
  TRY(parts->load_weights(file, config));
  TRY(parts->make_room());
  return std::unique_ptr<LocalStep>(new LocalStep(std::move(parts)));
}

Result<void> LocalStep::step() {
  Parts& parts = *parts_;
  const auto position = static_cast<std::uint32_t>(parts.step);
  if (position >= kBlocks * KvLayout::kBlockTokens) {
    return fail(Errc::PoolExhausted, "the benchmark's sequence has no room for another step");
  }
  GateSet gates(++parts.step, parts.stops, parts.nobody);
  gates.add_engine_lease(TRY(parts.reader.dependency(kEngineLease)));
  const LeaseDependency tenant = TRY(parts.reader.dependency(kTenantLease));
  gates.add_sequence({&tenant, 1});
  std::vector<Leased<std::byte>> blocks;
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(TRY(parts.memory->address(kTenantLease, {kExtent, i})));
  }
  const RowRef row{0, position};
  const std::int32_t token = 100;
  const BlockTableView table(blocks);
  const std::uint32_t logit_row = 0;
  parts.transformer->forward(*parts.weights, {.gates = &gates,
                                              .rows = {&row, 1},
                                              .tokens = {&token, 1},
                                              .block_tables = {&table, 1},
                                              .logit_rows = {&logit_row, 1}});
  return {};
}

std::uint64_t LocalStep::units() const {
  const auto counts = parts_->backend->units_run();
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace leasehold::bench

#include "tests/unit/kernels/cuda/matmul/matmul_fixture.hpp"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "kernels/cuda/plan/int8_plan.hpp"
#include "kernels/quant/dequantize.hpp"
#include "kernels/quant/row_group.hpp"
#include "tests/support/simt/runner.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlignment = 128;
constexpr std::byte kPoison{0xff};

/// The device memory of one call: operands, results and scratch.
struct CallMemory {
  CallMemory(const MatmulCall& call, const RunOptions& options);

  cuda::MatmulOperands operands(const MatmulCall& call, const RunOptions& options);
  cuda::MatmulScratch scratch(const MatmulCall& call, const RunOptions& options);
  /// What a kernel before the matmul writes.
  std::vector<simt::UnfinishedMemory> written_before(const RunOptions& options);
  bool is_intact() const {
    return groups.is_intact() && rounded.is_intact() && out.is_intact() && halves.is_intact() &&
           scales.is_intact() && partials.is_intact() && counters.is_intact();
  }

  device::GateMirror mirror{
      .live = ~std::uint64_t{0}, .engine_stopped = 0, .epoch = kEpochOfMirror};
  device::DeviceStep step;
  DeviceArray<std::byte> groups;
  DeviceBytes rounded;
  DeviceArray<float> x;
  DeviceArray<std::uint32_t> select;
  DeviceArray<float> bias;
  DeviceArray<float> norm_weight;
  DeviceArray<float> norm_out_scale;
  DeviceArray<float> out;
  DeviceArray<std::uint32_t> chosen;
  DeviceArray<std::uint16_t> halves;
  DeviceArray<float> scales;
  DeviceArray<float> partials;
  DeviceArray<std::uint32_t> counters;
};

std::uint32_t rows_of_step(const MatmulCall& call) {
  return call.chosen.empty() ? call.n_rows()
                             : static_cast<std::uint32_t>(call.chosen.size()) / call.items_per_x;
}

CallMemory::CallMemory(const MatmulCall& call, const RunOptions& options)
    : step{.n_rows = rows_of_step(call),
           .n_sequences = 1,
           .n_logit_rows = static_cast<std::uint32_t>(call.select.size()),
           .longest = 1},
      groups(call.is_grouped ? groups_of(*call.weight) : std::vector<std::byte>{}),
      rounded(device::int8_rows_bytes(call.n_rows(), call.weight->n_in)),
      x(call.x),
      select(call.select),
      bias(call.bias),
      norm_weight(call.norm_weight),
      norm_out_scale(std::vector{kNormOutScale}),
      out(std::size_t{call.n_results()} * call.n_out()),
      chosen(call.chosen),
      halves(device::tile_halves(call.n_rows(), call.weight->n_in)),
      scales(call.n_rows()),
      partials(std::max<std::uint64_t>(
          1, cuda::split_bytes(operands(call, options), options.card) / sizeof(float))),
      counters(std::vector<std::uint32_t>(cuda::counter_count(options.card), 0)) {
  if (!call.before.empty())
    std::memcpy(out.data(), call.before.data(), call.before.size() * sizeof(float));
}

cuda::MatmulOperands CallMemory::operands(const MatmulCall& call, const RunOptions& options) {
  const bool is_selected = !call.select.empty();
  const bool is_experts = !call.chosen.empty();
  return {
      .gate = {.mirror = &mirror,
               .step = &step,
               .rows = nullptr,
               .tenant_seen = options.tenant_seen},
      .type = call.weight->type,
      .layout = call.is_grouped ? MatrixLayout::RowGroups : MatrixLayout::Rows,
      .is_exact = call.is_exact,
      .n_out = call.n_out(),
      .n_in = call.weight->n_in,
      .weights = call.is_grouped ? groups.data() : call.weight->bytes.data(),
      .x = x.data(),
      .select = is_selected ? select.data() : nullptr,
      .experts = {.chosen = is_experts ? chosen.data() : nullptr, .items_per_x = call.items_per_x},
      .n_experts = call.n_experts,
      .out = out.data(),
      .bias = call.bias.empty() ? nullptr : bias.data(),
      .accumulate = !call.before.empty(),
      .n_results = call.n_results() + options.spare,
      .count = {.is_logit_rows = is_selected ? 1u : 0u, .per_row = call.items_per_x}};
}

cuda::MatmulScratch CallMemory::scratch(const MatmulCall& call, const RunOptions& options) {
  return {.tiles = {.halves = halves.data(), .scales = scales.data(), .n_in = call.weight->n_in},
          .rounded = device::int8_rows_at(rounded.data(), call.n_rows(), call.weight->n_in,
                                          block_shape(call.weight->type).elements),
          .rows_are_prepared = options.prepare_first,
          .partials = partials.data(),
          .counters = counters.data(),
          .norm = call.norm_weight.empty() ? device::RowNorm{}
                                           : device::RowNorm{.x = x.data(),
                                                             .weight = norm_weight.data(),
                                                             .out_scale = norm_out_scale.data(),
                                                             .width = call.weight->n_in,
                                                             .epsilon = kNormEpsilon,
                                                             .scale = kNormScale,
                                                             .is_centered = 1}};
}

std::vector<simt::UnfinishedMemory> CallMemory::written_before(const RunOptions& options) {
  std::vector<simt::UnfinishedMemory> unfinished = {
      {.memory = std::as_writable_bytes(x.span())},
      {.memory = rounded.span()},
      {.memory = std::as_writable_bytes(out.span())},
      {.memory = std::as_writable_bytes(std::span(&step, 1))},
      {.memory = std::as_writable_bytes(counters.span())}};
  if (options.stops_late || options.goes_on_late || options.tenant_seen != nullptr) {
    device::GateMirror old = mirror;
    old.epoch = kEpochOfMirror - 1;
    old.engine_stopped = options.goes_on_late ? 1 : 0;
    const auto bytes = std::as_bytes(std::span(&old, 1));
    unfinished.push_back({.memory = std::as_writable_bytes(std::span(&mirror, 1)),
                          .before = {bytes.begin(), bytes.end()}});
  }
  return unfinished;
}

void run_one(const cuda::KernelLaunch& launch) {
  const auto result = simt::run(launch);
  if (!result) FAIL(result.error().detail);
}

/// Returns whether the counters were not zero after the stop.
bool run_until_stop(const cuda::KernelLaunch& launch, CallMemory& memory, std::uint64_t n_blocks) {
  simt::set_block_hook([&](std::uint64_t n_run) {
    if (n_run == n_blocks) memory.mirror.engine_stopped = 1;
  });
  run_one(launch);
  simt::set_block_hook({});
  memory.mirror.engine_stopped = 0;
  const auto counters = memory.counters.values();
  std::fill_n(memory.counters.data(), counters.size(), 0u);
  return std::ranges::any_of(counters, [](std::uint32_t counter) { return counter != 0; });
}

}  // namespace

DeviceBytes::DeviceBytes(std::size_t size_bytes)
    : size_bytes_(size_bytes), usable_bytes_((size_bytes + 2 * kPage - 1) / kPage * kPage) {
  void* pages = mmap(nullptr, usable_bytes_ + kPage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  pages_ = static_cast<std::byte*>(pages);
  REQUIRE(mprotect(pages_ + usable_bytes_, kPage, PROT_NONE) == 0);
  std::fill_n(pages_, usable_bytes_, kPoison);
  data_ = pages_ + usable_bytes_ - (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  guard();
}

DeviceBytes::~DeviceBytes() {
  unguard();
  munmap(pages_, usable_bytes_ + kPage);
}

/// A kernel may read the 16 aligned bytes around a wanted byte.
void DeviceBytes::guard() const {
  const std::size_t readable_bytes = (size_bytes_ + 15) / 16 * 16;
  ASAN_POISON_MEMORY_REGION(pages_, data_ - pages_);
  ASAN_POISON_MEMORY_REGION(data_ + readable_bytes,
                            pages_ + usable_bytes_ - data_ - readable_bytes);
}

void DeviceBytes::unguard() const {
  ASAN_UNPOISON_MEMORY_REGION(pages_, usable_bytes_);
}

bool DeviceBytes::is_intact() const {
  unguard();
  const auto is_poison = [](std::byte byte) { return byte == kPoison; };
  const bool intact = std::all_of(pages_, data_, is_poison) &&
                      std::all_of(data_ + size_bytes_, pages_ + usable_bytes_, is_poison);
  guard();
  return intact;
}

DeviceMatrix::DeviceMatrix(SeededRandom& random, TensorType type_, std::uint32_t n_out_,
                           std::uint32_t n_in_)
    : type(type_), n_out(n_out_), n_in(n_in_), bytes(row_size_bytes(type, n_in) * n_out) {
  const std::size_t all = std::size_t{n_out} * (n_in / block_shape(type).elements);
  for (std::size_t block = 0; block < all; ++block)
    fill_block(random, type, bytes.data() + block * block_shape(type).size_bytes);
}

std::vector<float> DeviceMatrix::row(std::uint32_t output) const {
  std::vector<float> values(n_in);
  dequantize_row(type, bytes.data() + output * row_size_bytes(type, n_in), values.data(), n_in);
  return values;
}

std::vector<std::byte> groups_of(const DeviceMatrix& matrix) {
  const std::uint64_t group_bytes = row_group_bytes(matrix.type, matrix.n_in);
  std::vector<std::byte> groups(row_groups(matrix.n_out) * group_bytes);
  for (std::uint32_t group = 0; group < row_groups(matrix.n_out); ++group) {
    const std::uint32_t first = group * kGroupRows;
    interleave_rows(matrix.type,
                    matrix.bytes.data() + first * row_size_bytes(matrix.type, matrix.n_in),
                    std::min(kGroupRows, matrix.n_out - first), matrix.n_in,
                    groups.data() + group * group_bytes);
  }
  return groups;
}

std::uint32_t width_of(TensorType type, std::uint32_t width) {
  const std::uint32_t block = block_shape(type).elements;
  return (width + block - 1) / block * block;
}

std::uint32_t MatmulCall::n_rows() const {
  return static_cast<std::uint32_t>(x.size() / weight->n_in);
}

std::uint32_t MatmulCall::n_results() const {
  if (!chosen.empty()) return static_cast<std::uint32_t>(chosen.size());
  return select.empty() ? n_rows() : static_cast<std::uint32_t>(select.size());
}

MatmulCall random_call(SeededRandom& random, const DeviceMatrix& weight, std::uint32_t n_rows) {
  MatmulCall call = {.weight = &weight,
                     .x = random_floats(random, std::size_t{n_rows} * weight.n_in)};
  if (random.below(2) == 1) call.bias = random_floats(random, weight.n_out);
  if (random.below(2) == 1)
    for (std::uint32_t row = 0; row < n_rows; ++row)
      if (row + 1 == n_rows || random.below(3) == 0) call.select.push_back(row);
  if (random.below(2) == 1)
    call.before = random_floats(random, std::size_t{call.n_results()} * weight.n_out);
  return call;
}

std::vector<std::vector<float>> run_joined(std::span<const MatmulCall> calls,
                                           const RunOptions& options) {
  std::vector<std::unique_ptr<CallMemory>> memory;
  std::vector<cuda::MatmulOperands> group;
  for (const MatmulCall& call : calls) {
    memory.push_back(std::make_unique<CallMemory>(call, options));
    group.push_back(memory.back()->operands(call, options));
    group.back().gate = group.front().gate;
    group.back().x = group.front().x;
    group.back().select = group.front().select;
  }
  CallMemory& first = *memory.front();
  first.mirror.engine_stopped = options.is_stopped ? 1 : 0;
  DeviceArray<float> partials(
      std::max<std::uint64_t>(1, cuda::split_bytes(group, options.card) / sizeof(float)));
  cuda::MatmulScratch scratch = first.scratch(calls.front(), options);
  scratch.partials = partials.data();
  if (options.prepare_first) {
    cuda::MatmulOperands all = group.front();
    all.select = nullptr;
    all.count = {.is_logit_rows = 0, .per_row = 1};
    all.experts = {.chosen = nullptr, .items_per_x = 1};
    all.n_results = calls.front().n_rows();
    run_one(calls.front().is_grouped ? cuda::plan_round_rows(all, scratch.rounded)
                                     : cuda::plan_prepare_tiles(all, scratch.tiles));
  }
  for (const cuda::KernelLaunch& launch : cuda::plan_matmul(group, scratch, options.card)) {
    if (options.has_predecessor) simt::set_predecessor(first.written_before(options));
    if (options.stopped_after_blocks != 0)
      REQUIRE(run_until_stop(launch, first, options.stopped_after_blocks) == (launch.grid.z > 1));
    run_one(launch);
    simt::set_predecessor({});
  }
  REQUIRE(partials.is_intact());
  std::vector<std::vector<float>> results;
  for (const auto& one : memory) {
    REQUIRE(one->is_intact());
    results.push_back(one->out.values());
  }
  const auto counters = first.counters.values();
  REQUIRE(std::ranges::all_of(counters, [](std::uint32_t counter) { return counter == 0; }));
  return results;
}

std::vector<float> run_matmul(const MatmulCall& call, const RunOptions& options) {
  return run_joined({&call, 1}, options).front();
}

std::vector<std::string> kernels_of(const MatmulCall& call, const RunOptions& options) {
  CallMemory memory(call, options);
  std::vector<std::string> names;
  for (const cuda::KernelLaunch& launch : cuda::plan_matmul(
           memory.operands(call, options), memory.scratch(call, options), options.card))
    names.emplace_back(launch.kernel);
  return names;
}

}  // namespace leasehold::testing

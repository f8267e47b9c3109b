#include "tests/contract/backend/device_arrays.hpp"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <stdexcept>

#include "tests/support/leased_memory.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kArenaBytes = std::size_t{20} << 20;

BackendLimits with_arena(BackendLimits limits) {
  limits.scratch_bytes = kArenaBytes;
  return limits;
}

void must(CUresult result) {
  if (result != CUDA_SUCCESS)
    throw std::runtime_error(cuda::describe(test_card().driver(), result));
}

}  // namespace

DeviceArrays::DeviceArrays(BackendLimits limits, const ThreadGate& gate, cuda::CudaOptions options)
    : backend_(required(cuda::CudaBackend::create(test_card(), with_arena(limits), gate, options))),
      arena_(backend_->allocate_scratch(kArenaBytes)),
      stream_(required(cuda::create_stream(test_card()))) {
  reset_arena();
}

/// Poisons the space between arrays and unused space for AddressSanitizer.
void DeviceArrays::reset_arena() {
  arrays_.clear();
  arena_used_ = 0;
  ASAN_POISON_MEMORY_REGION(arena_, kArenaBytes);
}

// ------------------------------------------------------------------------------------------ arrays

std::byte* DeviceArrays::upload(const std::byte* host, std::size_t size_bytes) {
  if (host == nullptr || size_bytes == 0) return arena_;
  const auto known = std::ranges::find(arrays_, host, &Array::host);
  if (known != arrays_.end()) return known->device;
  std::byte* const device = arena_ + arena_used_;
  arena_used_ += (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (arena_used_ > kArenaBytes) throw std::runtime_error("the arena is too small for this case");
  arrays_.push_back({const_cast<std::byte*>(host), device, size_bytes});
  ASAN_UNPOISON_MEMORY_REGION(device, size_bytes);
  must(test_card().driver().cuMemcpyHtoDAsync(cuda::device_address(device), host, size_bytes,
                                              stream_.get()));
  return device;
}

template <class T>
T* DeviceArrays::on_device(T* host, std::size_t count) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(host);
  return reinterpret_cast<T*>(upload(bytes, count * sizeof(T)));
}

void DeviceArrays::wait() const {
  must(test_card().driver().cuStreamSynchronize(stream_.get()));
}

void DeviceArrays::download_all() {
  for (const Array& array : arrays_)
    must(test_card().driver().cuMemcpyDtoHAsync(array.host, cuda::device_address(array.device),
                                                array.size_bytes, stream_.get()));
  wait();
  reset_arena();
}

template <class Launch>
LaunchStatus DeviceArrays::in_step(const LaunchContext& context, StepInput parts, Launch&& launch) {
  wait();
  reach_->open();
  parts.gates = context.gates;
  parts.rows = context.rows;
  const std::uint64_t before = backend_->units_run()[0];
  backend_->begin_step(parts);
  begin_step_units_ += backend_->units_run()[0] - before;
  LaunchStatus status = std::forward<Launch>(launch)();
  status.live &= backend_->finish_step(*context.gates).live;
  download_all();
  reach_ = std::make_unique<DeviceRegistration>();
  return status;
}

void DeviceArrays::reach(const WeightMatrix& matrix) {
  reach_->add(matrix.data, row_size_bytes(matrix.type, matrix.n_in) * matrix.n_out);
}

/// Cases protect the blocks of dead sequences, which no kernel may touch.
void DeviceArrays::reach(std::span<const BlockTableView> tables, const KvLayer& layer) {
  for (const BlockTableView& table : tables)
    for (const Leased<std::byte> block : table.blocks)
      reach_->add(block, layer.offset_bytes + layer.size_bytes(), ProtectedMemory::Skip);
}

void DeviceArrays::reach(std::span<const StateTableView> tables, std::size_t size_bytes) {
  for (const StateTableView& table : tables) {
    for (const Leased<const std::byte> block : table.from)
      reach_->add(block, size_bytes, ProtectedMemory::Skip);
    for (const Leased<std::byte> block : table.to)
      reach_->add(block, size_bytes, ProtectedMemory::Skip);
  }
}

std::vector<std::uint64_t> DeviceArrays::units_run() const {
  return {backend_->units_run()[0] - begin_step_units_};
}

// ----------------------------------------------------------------------------------------- scratch

std::byte* DeviceArrays::allocate_scratch(std::size_t size_bytes) {
  return backend_->allocate_scratch(size_bytes);
}
void DeviceArrays::clear_scratch(std::byte* at, std::size_t size_bytes) {
  backend_->clear_scratch(at, size_bytes);
}
std::span<const float> DeviceArrays::fetch(const float* at, std::size_t count) {
  return backend_->fetch(at, count);
}

// --------------------------------------------------------------------------------------- operators

LaunchStatus DeviceArrays::embedding(const LaunchContext& context, const EmbeddingArgs& args) {
  EmbeddingArgs here = args;
  reach(args.table);
  here.out = on_device(args.out, context.rows.size() * args.table.n_in);
  return in_step(context, {.tokens = {args.tokens, context.rows.size()}},
                 [&] { return backend_->embedding(context, here); });
}

RmsNormArgs DeviceArrays::on_device(const LaunchContext& context, const RmsNormArgs& args) {
  RmsNormArgs here = args;
  const std::size_t count = context.rows.size() * args.vectors_per_row * args.width;
  const std::size_t n_weights = args.has_own_weights ? args.vectors_per_row : 1;
  reach_->add(args.weight.as<const std::byte>(), n_weights * args.width * sizeof(float));
  reach_->add(args.out_scale.as<const std::byte>(), sizeof(float));
  here.x = on_device(args.x, count);
  here.out = on_device(args.out, count);
  return here;
}
LaunchStatus DeviceArrays::rms_norm(const LaunchContext& context, const RmsNormArgs& args) {
  const RmsNormArgs here = on_device(context, args);
  return in_step(context, {}, [&] { return backend_->rms_norm(context, here); });
}

MatmulArgs DeviceArrays::on_device(const LaunchContext& context, const MatmulArgs& args) {
  MatmulArgs here = args;
  const std::size_t n_out = args.select.empty() ? context.rows.size() : args.select.size();
  reach(args.weight);
  reach_->add(args.bias.as<const std::byte>(), args.weight.n_out * sizeof(float));
  here.x = on_device(args.x, context.rows.size() * args.weight.n_in);
  here.out = on_device(args.out, n_out * args.weight.n_out);
  return here;
}
LaunchStatus DeviceArrays::matmul(const LaunchContext& context, const MatmulArgs& args) {
  const MatmulArgs here = on_device(context, args);
  return in_step(context, {.logit_rows = args.select},
                 [&] { return backend_->matmul(context, here); });
}

LaunchStatus DeviceArrays::project(const LaunchContext& context, const ProjectionArgs& args) {
  RmsNormArgs norm{};
  SwiGluArgs swiglu{};
  std::vector<MatmulArgs> matmuls;
  if (args.norm != nullptr) norm = on_device(context, *args.norm);
  if (args.swiglu != nullptr) swiglu = on_device(context, *args.swiglu);
  for (const MatmulArgs& one : args.matmuls) matmuls.push_back(on_device(context, one));
  const ProjectionArgs here{.norm = args.norm != nullptr ? &norm : nullptr,
                            .swiglu = args.swiglu != nullptr ? &swiglu : nullptr,
                            .matmuls = matmuls,
                            .softcap = args.softcap};
  return in_step(context, {.logit_rows = args.matmuls.front().select},
                 [&] { return backend_->project(context, here); });
}

LaunchStatus DeviceArrays::feed_forward(const LaunchContext& context, const FeedForwardArgs& args) {
  FeedForwardArgs here = args;
  RmsNormArgs norm{};
  if (args.norm != nullptr) {
    norm = on_device(context, *args.norm);
    here.norm = &norm;
  }
  here.gate = on_device(context, args.gate);
  if (args.up.weight.data) here.up = on_device(context, args.up);
  here.down = on_device(context, args.down);
  return in_step(context, {.logit_rows = args.gate.select},
                 [&] { return backend_->feed_forward(context, here); });
}

HeadsArgs DeviceArrays::on_device(const LaunchContext& context, const HeadsArgs& args) {
  HeadsArgs here = args;
  const std::size_t n_rows = context.rows.size();
  const std::size_t n_kv = n_rows * args.layout.n_kv_heads * args.layout.head_dim;
  reach(args.block_tables, args.layout);
  reach_->add(args.query_norm.as<const std::byte>(), args.layout.head_dim * sizeof(float));
  reach_->add(args.key_norm.as<const std::byte>(), args.layout.value_dim() * sizeof(float));
  here.q = on_device(args.q, n_rows * args.n_heads * args.layout.head_dim);
  if (args.k != nullptr) here.k = on_device(args.k, n_kv);
  if (args.v != nullptr && !args.layout.is_latent()) here.v = on_device(args.v, n_kv);
  return here;
}

AttentionArgs DeviceArrays::on_device(const LaunchContext& context, const AttentionArgs& args) {
  AttentionArgs here = args;
  const std::size_t n_heads = context.rows.size() * args.n_heads;
  reach(args.block_tables, args.layout);
  reach_->add(args.sinks.as<const std::byte>(), args.n_heads * sizeof(float));
  here.q = on_device(args.q, n_heads * args.layout.head_dim);
  here.out = on_device(args.out, n_heads * args.layout.value_dim());
  return here;
}

/// The parts of a step that heads need.
StepInput DeviceArrays::step_of(const LaunchContext& context, const HeadsArgs& args) {
  const std::size_t n_rows = context.rows.size();
  return {.block_tables = args.block_tables,
          .cos_sin = {args.cos_sin, args.uses_window_angles ? 0 : n_rows * args.rope_dim},
          .query_scales = {args.query_scales, args.query_scales != nullptr ? n_rows : 0},
          .window_cos_sin = {args.cos_sin, args.uses_window_angles ? n_rows * args.rope_dim : 0}};
}

LaunchStatus DeviceArrays::prepare_heads(const LaunchContext& context, const HeadsArgs& args) {
  const HeadsArgs here = on_device(context, args);
  return in_step(context, step_of(context, args),
                 [&] { return backend_->prepare_heads(context, here); });
}

LaunchStatus DeviceArrays::attention(const LaunchContext& context, const AttentionArgs& args) {
  const AttentionArgs here = on_device(context, args);
  return in_step(context, {.block_tables = args.block_tables},
                 [&] { return backend_->attention(context, here); });
}

LaunchStatus DeviceArrays::prepare_and_attend(const LaunchContext& context, const HeadsArgs& heads,
                                              const AttentionArgs& attention) {
  const HeadsArgs heads_here = on_device(context, heads);
  const AttentionArgs here = on_device(context, attention);
  return in_step(context, step_of(context, heads),
                 [&] { return backend_->prepare_and_attend(context, heads_here, here); });
}

SwiGluArgs DeviceArrays::on_device(const LaunchContext& context, const SwiGluArgs& args) {
  SwiGluArgs here = args;
  here.gate = on_device(args.gate, context.rows.size() * args.width);
  here.up = on_device(args.up, context.rows.size() * args.stride());
  return here;
}
LaunchStatus DeviceArrays::swiglu(const LaunchContext& context, const SwiGluArgs& args) {
  const SwiGluArgs here = on_device(context, args);
  return in_step(context, {}, [&] { return backend_->swiglu(context, here); });
}

LaunchStatus DeviceArrays::convolution(const LaunchContext& context, const ConvolutionArgs& args) {
  ConvolutionArgs here = args;
  const std::size_t count = context.rows.size() * args.n_channels;
  reach_->add(args.weight.as<const std::byte>(),
              std::size_t{args.n_channels} * args.n_taps * sizeof(float));
  reach_->add(args.bias.as<const std::byte>(), args.n_channels * sizeof(float));
  reach(args.state_tables, args.piece.offset_bytes + (args.n_taps - 1) * args.n_channels * 4);
  here.x = on_device(args.x, count);
  if (args.input_gate != nullptr) here.input_gate = on_device(args.input_gate, count);
  if (args.output_gate != nullptr) here.output_gate = on_device(args.output_gate, count);
  here.out = on_device(args.out, count);
  return in_step(context, {.state_tables = args.state_tables},
                 [&] { return backend_->convolution(context, here); });
}

LaunchStatus DeviceArrays::recurrence(const LaunchContext& context, const RecurrenceArgs& args) {
  RecurrenceArgs here = args;
  const std::size_t n_rows = context.rows.size();
  for (const Leased<const float> vector : {args.step_bias, args.decay_rates, args.skip})
    reach_->add(vector.as<const std::byte>(), args.n_heads * sizeof(float));
  std::size_t end = 0;
  for (const StatePiece& piece : args.pieces.first(args.n_heads))
    end = std::max(end, std::size_t{piece.offset_bytes} + args.key_dim * args.value_dim * 4);
  reach(args.state_tables, end);
  here.x = on_device(args.x, n_rows * args.row_width);
  here.steps = on_device(args.steps, n_rows * args.n_heads);
  here.weights = on_device(args.weights, n_rows * args.n_heads);
  here.out = on_device(args.out, n_rows * args.n_heads * args.value_dim);
  return in_step(context, {.state_tables = args.state_tables},
                 [&] { return backend_->recurrence(context, here); });
}

/// Cases protect the matrices of dead sequences, which no kernel may touch.
void DeviceArrays::reach(const LowRankArgs& args) {
  for (const LowRankMatrix* adapter : args.adapters)
    for (const LowRankProduct& product : args.products) {
      if (adapter == nullptr || adapter[product.slot].rank == 0) continue;
      const LowRankMatrix& matrix = adapter[product.slot];
      const auto add = [&](Leased<const std::byte> at, std::uint32_t width) {
        reach_->add(at, matrix.rank * row_size_bytes(matrix.type, width), ProtectedMemory::Skip);
      };
      add(matrix.a, args.n_in);
      add(matrix.b, product.n_out);
    }
}

LaunchStatus DeviceArrays::low_rank(const LaunchContext& context, const LowRankArgs& args) {
  LowRankArgs here = args;
  std::vector<LowRankProduct> products(args.products.begin(), args.products.end());
  const std::size_t n_rows = context.rows.size();
  reach(args);
  here.x = on_device(args.x, n_rows * args.n_in);
  here.h = on_device(args.h, n_rows * products.size() * args.max_rank);
  for (LowRankProduct& product : products)
    product.out = on_device(product.out, n_rows * product.n_out);
  here.products = products;
  return in_step(context, {.adapters = args.adapters},
                 [&] { return backend_->low_rank(context, here); });
}

LaunchStatus DeviceArrays::softcap(const LaunchContext& context, const SoftcapArgs& args) {
  SoftcapArgs here = args;
  const std::size_t n_rows = args.select.empty() ? context.rows.size() : args.select.size();
  here.x = on_device(args.x, n_rows * args.width);
  return in_step(context, {.logit_rows = args.select},
                 [&] { return backend_->softcap(context, here); });
}

LaunchStatus DeviceArrays::expert_routing(const LaunchContext& context,
                                          const ExpertRoutingArgs& args) {
  ExpertRoutingArgs here = args;
  const std::size_t n_rows = context.rows.size();
  for (const Leased<const float> vector : {args.selection_bias, args.expert_scales})
    reach_->add(vector.as<const std::byte>(), args.n_experts * sizeof(float));
  here.scores = on_device(args.scores, n_rows * args.n_experts);
  here.chosen = on_device(args.chosen, n_rows * args.n_used);
  here.weights = on_device(args.weights, n_rows * args.n_used);
  return in_step(context, {}, [&] { return backend_->expert_routing(context, here); });
}

LaunchStatus DeviceArrays::expert_matmul(const LaunchContext& context,
                                         const ExpertMatmulArgs& args) {
  ExpertMatmulArgs here = args;
  reach(args.weight);
  if (args.chosen != nullptr) here.chosen = on_device(args.chosen, args.n_items);
  here.x = on_device(args.x, std::size_t{args.n_items / args.items_per_x} * args.weight.n_in);
  here.out = on_device(args.out, std::size_t{args.n_items} * args.stride());
  reach_->add(args.bias.as<const std::byte>(), args.weight.n_out * sizeof(float));
  return in_step(context, {}, [&] { return backend_->expert_matmul(context, here); });
}

LaunchStatus DeviceArrays::weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) {
  WeightedSumArgs here = args;
  const std::size_t n_rows = context.rows.size();
  here.x = on_device(args.x, n_rows * args.n_terms * args.width);
  here.weights = on_device(args.weights, n_rows * args.n_terms);
  here.out = on_device(args.out, n_rows * args.width);
  return in_step(context, {}, [&] { return backend_->weighted_sum(context, here); });
}

LaunchStatus DeviceArrays::copy_in(const LaunchContext& context, const CopyInArgs& args) {
  DeviceRegistration reached;
  reached.add(args.to, args.size_bytes);
  reached.open();
  return backend_->copy_in(context, args);
}

LaunchStatus DeviceArrays::copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) {
  DeviceRegistration reached;
  for (const LeasedCopy& copy : args.copies) {
    reached.add(copy.to, args.block_size_bytes);
    reached.add(copy.from, args.block_size_bytes);
  }
  reached.open();
  return backend_->copy_blocks(context, args);
}

void DeviceArrays::write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) {
  DeviceRegistration reached;
  for (const LeasedPiece& piece : pieces) reached.add(piece.to, piece.bytes.size());
  reached.open();
  backend_->write(permit, pieces);
}

}  // namespace leasehold::testing

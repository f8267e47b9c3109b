#include "tests/contract/backend/rig.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/quant/dequantize.hpp"
#include "kernels/reference/reference_backend.hpp"
#ifdef __x86_64__
#include "kernels/cpu/amx/dot_groups.hpp"
#include "kernels/cpu/amx/int8.hpp"
#include "kernels/cpu/avx512/int8.hpp"
#endif
#if LEASEHOLD_TEST_CUDA
#include "tests/contract/backend/device_arrays.hpp"
#endif

namespace leasehold::testing {

#if LEASEHOLD_TEST_CUDA
namespace {

/// More rows than the few-rows kernels support, so that the many-rows kernels run too.
BackendLimits cuda_limits() {
  BackendLimits limits = kLimits;
  limits.max_rows = 208;
  limits.rope_dim = 96;
  limits.state_blocks = 8;
  return limits;
}

}  // namespace
#endif

#ifdef __x86_64__
namespace {

const RowKernels& emulated_amx() {
  static const RowKernels kernels = [] {
    RowKernels emulated = row_kernels(SimdPath::Amx);
    emulated.dot_groups_int8 = amx::dot_groups_or_avx512<EmulatedTiles>;
    emulated.end_int8_unit = amx::release_tiles<EmulatedTiles>;
    return emulated;
  }();
  return kernels;
}

}  // namespace
#endif

Rig::Rig(std::uint32_t threads, GateProbe* probe) {
#if LEASEHOLD_TEST_CUDA
  if (threads == kCuda) {
    backend = std::make_unique<DeviceArrays>(cuda_limits(), table.gate(0, probe),
                                             cuda::CudaOptions{.graphs = cuda::GraphUse::None});
    return;
  }
#endif
  if (threads == 0)
    backend = std::make_unique<ReferenceBackend>(kLimits, table.gate(0, probe));
  else if (threads == kTwoNodes)
    backend = required(CpuBackend::create(kLimits, table.gates(3, probe), best_simd_path(),
                                          {.threads = {2, 1}, .bind = {}}));
#ifdef __x86_64__
  else if (threads == kEmulatedAmx)
    backend = required(CpuBackend::create(kLimits, table.gates(gates_of(threads), probe),
                                          emulated_amx(), "cpu-emulated-amx"));
#endif
  else if (threads < kForcedSimd)
    backend = required(CpuBackend::create(kLimits, table.gates(threads, probe)));
  else
    backend = required(CpuBackend::create(kLimits, table.gates(gates_of(threads), probe),
                                          static_cast<SimdPath>(threads - kForcedSimd)));
}

LaunchStatus append(Backend& backend, const LaunchContext& context, const KvLayer& layer,
                    std::vector<float> k, std::vector<float> v,
                    std::span<const BlockTableView> block_tables) {
  return backend.prepare_heads(
      context, {.layout = layer, .k = k.data(), .v = v.data(), .block_tables = block_tables});
}

std::vector<RowRef> plain_rows(std::uint32_t n) {
  std::vector<RowRef> rows;
  for (std::uint32_t i = 0; i < n; ++i) rows.push_back({.sequence = i, .position = 7 * i});
  return rows;
}

std::vector<RowRef> rows_of(const std::vector<std::uint32_t>& counts,
                            const std::vector<std::uint32_t>& lengths) {
  std::vector<RowRef> rows;
  for (std::uint32_t s = 0; s < counts.size(); ++s)
    for (std::uint32_t i = 0; i < counts[s]; ++i)
      rows.push_back({.sequence = s, .position = lengths[s] - counts[s] + i});
  return rows;
}

Matrix::Matrix(SeededRandom& random, TensorType type_, std::uint32_t n_out_, std::uint32_t n_in_)
    : type(type_),
      n_out(n_out_),
      n_in(n_in_),
      memory(row_size_bytes(type, n_in) * n_out),
      values(std::size_t{n_out} * n_in) {
  std::byte* bytes = memory.bytes();
  const BlockShape shape = block_shape(type);
  for (std::size_t block = 0; block < values.size() / shape.elements; ++block)
    fill_block(random, type, bytes + block * shape.size_bytes);
  for (std::uint32_t row = 0; row < n_out; ++row)
    dequantize_row(type, bytes + row * row_size_bytes(type, n_in),
                   values.data() + std::size_t{row} * n_in, n_in);
}

WeightMatrix Matrix::view() const {
  return {.type = type, .n_out = n_out, .n_in = n_in, .data = memory.at()};
}

namespace {

/// Heads of Q8_0: codes, then scales.
void fill_q8(SeededRandom& random, const KvLayer& shape, std::span<std::byte> bytes) {
  const std::size_t n_codes = std::size_t{KvLayout::kBlockTokens} * shape.head_dim;
  for (std::size_t at = 0; at < bytes.size();) {
    for (std::size_t i = 0; i < n_codes; ++i, ++at)
      bytes[at] = static_cast<std::byte>(static_cast<int>(random.below(255)) - 127);
    for (std::size_t i = 0; i < n_codes / 32; ++i, at += sizeof(Half)) {
      const Half scale = f16_from_f32(std::abs(random_floats(random, 1, 2.0F / 127)[0]));
      std::memcpy(&bytes[at], &scale, sizeof scale);
    }
  }
}

}  // namespace

KvFixture::KvFixture(SeededRandom& random, KvLayout layout_,
                     const std::vector<std::uint32_t>& lengths)
    : layout(std::move(layout_)), shape(layout.layer(0)), sequences_(lengths.size()) {
  const std::size_t block_bytes = layout.block_size_bytes();
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    Sequence& sequence = sequences_[s];
    const std::size_t n_blocks = (lengths[s] + KvLayout::kBlockTokens - 1) / KvLayout::kBlockTokens;
    const std::size_t n_extents = (n_blocks + kBlocksPerExtent - 1) / kBlocksPerExtent;
    for (std::size_t e = 0; e < n_extents; ++e)
      sequence.extents.emplace_back(kBlocksPerExtent * block_bytes);
    for (std::uint32_t i = 0; i < n_extents * kBlocksPerExtent; ++i)
      sequence.block_locations.push_back(
          {i / kBlocksPerExtent, i % kBlocksPerExtent * block_bytes});
    for (std::size_t i = sequence.block_locations.size(); i > 1; --i)
      std::swap(sequence.block_locations[i - 1], sequence.block_locations[random.below(i)]);
    sequence.block_locations.resize(n_blocks);
    for (const BlockLocation location : sequence.block_locations)
      sequence.table.push_back(sequence.extents[location.extent].at(location.offset_bytes));
    for (LeasedMemory& extent : sequence.extents) {
      if (shape.type == KvType::Q8_0) {
        fill_q8(random, shape, {extent.bytes(), kBlocksPerExtent * block_bytes});
        continue;
      }
      const auto values =
          random_floats(random, kBlocksPerExtent * block_bytes / size_bytes(shape.type), 2.0F);
      if (shape.type == KvType::F32) {
        extent.fill<float>(values);
        continue;
      }
      std::vector<Half> halves(values.size());
      std::ranges::transform(values, halves.begin(), f16_from_f32);
      extent.fill<Half>(halves);
    }
  }
  for (const Sequence& sequence : sequences_) views_.emplace_back(sequence.table);
}

float KvFixture::at(std::uint32_t sequence, std::uint32_t layer, std::uint32_t plane,
                    std::uint32_t kv_head, std::uint32_t position, std::uint32_t d) const {
  const Sequence& owner = sequences_[sequence];
  const BlockLocation location = owner.block_locations[position / 16];
  const std::byte* block = owner.extents[location.extent].bytes() + location.offset_bytes;
  const std::size_t heads_before = shape.latent_dim > 0
                                       ? std::size_t{layer} * shape.n_kv_heads
                                       : (std::size_t{layer} * 2 + plane) * shape.n_kv_heads;
  const std::size_t element = ((heads_before + kv_head) * 16 + position % 16) * shape.head_dim + d;
  if (shape.type == KvType::Q8_0) {
    const std::byte* head = block + element / (16 * shape.head_dim) * (17 * shape.head_dim);
    const std::size_t in_head = element % (16 * shape.head_dim);
    Half scale;
    std::memcpy(&scale, head + 16 * shape.head_dim + in_head / 32 * sizeof scale, sizeof scale);
    return static_cast<float>(static_cast<std::int8_t>(head[in_head])) * f32_from_f16(scale);
  }
  if (shape.type == KvType::F32) {
    float value;
    std::memcpy(&value, block + element * sizeof value, sizeof value);
    return value;
  }
  Half value;
  std::memcpy(&value, block + element * sizeof value, sizeof value);
  return f32_from_f16(value);
}

void KvFixture::forbid(std::uint32_t sequence) {
  for (LeasedMemory& extent : sequences_[sequence].extents) extent.forbid_access();
}

std::vector<std::byte> KvFixture::bytes_of(std::uint32_t sequence) const {
  std::vector<std::byte> all;
  for (const LeasedMemory& extent : sequences_[sequence].extents) {
    const std::byte* bytes = extent.bytes();
    all.insert(all.end(), bytes, bytes + kBlocksPerExtent * layout.block_size_bytes());
  }
  return all;
}

}  // namespace leasehold::testing

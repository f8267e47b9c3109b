#include "kernels/cuda/step_memory.hpp"

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold::cuda {
namespace {

std::size_t blocks_of(std::uint32_t positions) {
  return (positions + KvLayout::kBlockTokens - 1) / KvLayout::kBlockTokens;
}

}  // namespace

StepMemory::Offsets StepMemory::compute_offsets(const BackendLimits& limits) {
  Offsets offsets{};
  offsets.rows = aligned(sizeof(device::DeviceStep));
  offsets.tokens = offsets.rows + aligned(limits.max_rows * sizeof(RowRef));
  offsets.logit_rows = offsets.tokens + aligned(limits.max_rows * sizeof(std::int32_t));
  offsets.first_block = offsets.logit_rows + aligned(limits.max_rows * sizeof(std::uint32_t));
  offsets.query_scales = offsets.first_block + aligned(std::size_t{limits.n_kv_groups} *
                                                       kMaxStepSequences * sizeof(std::uint32_t));
  offsets.cos_sin = offsets.query_scales + aligned(limits.max_rows * sizeof(float));
  const std::size_t angles_bytes =
      aligned(std::size_t{limits.max_rows} * limits.rope_dim * sizeof(float));
  offsets.window_cos_sin = offsets.cos_sin + angles_bytes;
  offsets.end = offsets.window_cos_sin + angles_bytes;
  return offsets;
}

Result<StepMemory> StepMemory::create(const Context& context, const BackendLimits& limits) {
  StepMemory memory(compute_offsets(limits), limits);
  const std::size_t tables_bytes = limits.n_kv_groups * kMaxStepSequences *
                                   blocks_of(limits.max_context) * sizeof(std::uint64_t);
  memory.head_ = TRY(DeviceBuffer::allocate(context, memory.offsets_.end));
  memory.tables_ = TRY(DeviceBuffer::allocate(context, tables_bytes));
  memory.host_head_ = TRY(PinnedBuffer::allocate(context, memory.offsets_.end));
  memory.host_tables_ = TRY(PinnedBuffer::allocate(context, tables_bytes));
  if (limits.adapter_slots > 0) {
    const std::size_t adapters_bytes =
        std::size_t{kMaxStepSequences} * limits.adapter_slots * sizeof(device::DeviceLowRank);
    memory.adapters_.memory = TRY(DeviceBuffer::allocate(context, adapters_bytes));
    memory.adapters_.host = TRY(PinnedBuffer::allocate(context, adapters_bytes));
  }
  if (limits.state_blocks == 0) return memory;
  const std::size_t states_bytes =
      std::size_t{kMaxStepSequences} * kStateCopies * limits.state_blocks * sizeof(std::uint64_t);
  memory.states_ = TRY(DeviceBuffer::allocate(context, states_bytes));
  memory.host_states_ = TRY(PinnedBuffer::allocate(context, states_bytes));
  return memory;
}

template <class T>
void StepMemory::put(std::size_t offset, std::span<const T> values) {
  std::copy(values.begin(), values.end(), reinterpret_cast<T*>(host_head_.data() + offset));
}

/// `first` is where the table's block 0 would be, which may be before the start of the addresses.
StepMemory::PutTables StepMemory::put_tables(const StepInput& input, const LaunchPermit& permit) {
  const std::span<const BlockTableView> tables = input.block_tables;
  const std::uint32_t n_sequences = input.gates->sequence_count();
  auto* const first = reinterpret_cast<std::uint32_t*>(host_head_.data() + offsets_.first_block);
  auto* const addresses = reinterpret_cast<std::uint64_t*>(host_tables_.data());
  const std::size_t room = host_tables_.size_bytes() / sizeof(std::uint64_t);
  PutTables made;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    first[t / n_sequences * kMaxStepSequences + t % n_sequences] =
        static_cast<std::uint32_t>(made.count - tables[t].first);
    expects(made.count + tables[t].blocks.size() <= room, "block tables fit the longest context");
    for (const Leased<std::byte> block : tables[t].blocks) {
      const std::uint64_t address = device_address(permit.open(block));
      made.is_uploaded &= made.count < n_uploaded_ && addresses[made.count] == address;
      addresses[made.count++] = address;
    }
  }
  return made;
}

std::size_t StepMemory::put_states(std::span<const StateTableView> states,
                                   const LaunchPermit& permit) {
  auto* const addresses = reinterpret_cast<std::uint64_t*>(host_states_.data());
  std::size_t count = 0;
  for (const StateTableView& state : states) {
    expects(state.from.empty() || state.from.size() == state.to.size(),
            "both copies of a state have the same blocks");
    expects(state.to.size() == states.front().to.size(), "all states have the same size");
    expects((count + kStateCopies * state.to.size()) * sizeof(std::uint64_t) <=
                host_states_.size_bytes(),
            "recurrent states stay within BackendLimits");
    for (std::size_t i = 0; i < state.to.size(); ++i)
      addresses[count++] = state.from.empty() ? 0 : device_address(permit.open(state.from[i]));
    for (const Leased<std::byte> block : state.to)
      addresses[count++] = device_address(permit.open(block));
  }
  return count;
}

bool StepMemory::put_adapters(AdapterTable adapters, const LaunchPermit& permit) {
  expects(adapters.size() <= kMaxStepSequences && adapters_.n_slots > 0,
          "the backend has room for the step's adapters");
  auto* to = reinterpret_cast<device::DeviceLowRank*>(adapters_.host.data());
  bool is_uploaded = adapters.size() <= adapters_.n_uploaded;
  for (const LowRankMatrix* adapter : adapters)
    for (std::uint32_t slot = 0; slot < adapters_.n_slots; ++slot, ++to) {
      device::DeviceLowRank matrix{};
      if (adapter != nullptr && adapter[slot].rank > 0)
        matrix = {.a = device_address(permit.open(adapter[slot].a)),
                  .b = device_address(permit.open(adapter[slot].b)),
                  .rank = adapter[slot].rank,
                  .scale = adapter[slot].scale,
                  .type = adapter[slot].type};
      is_uploaded &= *to == matrix;
      *to = matrix;
    }
  return is_uploaded;
}

void StepMemory::upload(const StepInput& input, Launcher& launcher) {
  expects(
      input.rows.size() <= max_rows_ && input.logit_rows.size() <= max_rows_ &&
          input.gates->sequence_count() <= kMaxStepSequences &&
          input.block_tables.size() <= std::size_t{n_kv_groups_} * input.gates->sequence_count(),
      "a step stays within BackendLimits");
  longest_ = 0;
  n_rows_ = static_cast<std::uint32_t>(input.rows.size());
  n_runs_ = 0;
  for (std::size_t r = 0; r < input.rows.size(); ++r) {
    longest_ = std::max(longest_, input.rows[r].position + 1);
    n_runs_ += r == 0 || input.rows[r].sequence != input.rows[r - 1].sequence ? 1 : 0;
  }
  const device::DeviceStep step{
      .n_rows = n_rows_,
      .n_sequences = input.gates->sequence_count(),
      .n_logit_rows = static_cast<std::uint32_t>(input.logit_rows.size()),
      .longest = longest_,
      .state_blocks = input.state_tables.empty()
                          ? 0
                          : static_cast<std::uint32_t>(input.state_tables.front().to.size())};
  put<device::DeviceStep>(0, {&step, 1});
  put(offsets_.rows, input.rows);
  put(offsets_.tokens, input.tokens);
  put(offsets_.logit_rows, input.logit_rows);
  put(offsets_.query_scales, input.query_scales);
  put(offsets_.cos_sin, input.cos_sin);
  put(offsets_.window_cos_sin, input.window_cos_sin);
  const std::size_t head_bytes = input.window_cos_sin.empty()
                                     ? offsets_.cos_sin + input.cos_sin.size_bytes()
                                     : offsets_.window_cos_sin + input.window_cos_sin.size_bytes();
  const UnitLabel label{
      .site = LaunchSite::Embedding, .layer = 0, .touches = Touches::WeightsAndScratch};
  launcher.unit(*input.gates, label, "uploading a step", [&](const LaunchPermit& permit) {
    const PutTables tables = put_tables(input, permit);
    const std::size_t states = put_states(input.state_tables, permit);
    const bool has_adapters = input.adapters.empty() || put_adapters(input.adapters, permit);
    CUresult copied = launcher.copy_to_device(head_.data(), host_head_.data(), head_bytes);
    if (copied == CUDA_SUCCESS && states > 0)
      copied = launcher.copy_to_device(states_.data(), host_states_.data(),
                                       states * sizeof(std::uint64_t));
    if (copied == CUDA_SUCCESS && !has_adapters) {
      adapters_.n_uploaded = input.adapters.size();
      copied = launcher.copy_to_device(
          adapters_.memory.data(), adapters_.host.data(),
          adapters_.n_uploaded * adapters_.n_slots * sizeof(device::DeviceLowRank));
    }
    if (copied != CUDA_SUCCESS || tables.is_uploaded) return copied;
    n_uploaded_ = tables.count;
    return launcher.copy_to_device(tables_.data(), host_tables_.data(),
                                   tables.count * sizeof(std::uint64_t));
  });
}

device::KernelGate StepMemory::gate(const device::GateMirror* mirror) const {
  return {.mirror = mirror, .step = at<device::DeviceStep>(0), .rows = at<RowRef>(offsets_.rows)};
}

device::BlockTables StepMemory::block_tables(std::uint32_t group) const {
  return {.addresses = reinterpret_cast<const std::uint64_t*>(tables_.data()),
          .first = at<std::uint32_t>(offsets_.first_block) + group * kMaxStepSequences};
}

}  // namespace leasehold::cuda

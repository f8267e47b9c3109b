// Probes that need kernels: check whether graphs obey conditions, and whether wgmma rounds like
// mma.sync.
#include <array>
#include <cstring>
#include <vector>

#include "kernels/cuda/device/bench_params.hpp"
#include "kernels/cuda/plan/mma_probe.hpp"
#include "kernels/cuda/plan/step_plan.hpp"
#include "tools/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

/// The value of a word after a graph of one gated segment. The segment's kernels have no gate of
/// their own, so only the condition can prevent their stores.
struct PokedWord {
  std::uint32_t value = 0;
  std::uint32_t n_programmatic = 0;  ///< Programmatic edges of the graph.
};

/// Runs a graph in which each kernel of the segment sets the word to one of `values`.
Result<PokedWord> poke_word(Card& card, bool is_stopped,
                            std::initializer_list<std::uint32_t> values) {
  const cuda::DeviceBuffer word = TRY(cuda::DeviceBuffer::allocate(card.context(), 256));
  const cuda::PinnedBuffer seen = TRY(cuda::PinnedBuffer::allocate(card.context(), 256));
  const CUdeviceptr at = cuda::device_address(word.data());
  TRY(card.clear(at, word.size_bytes()));
  const auto gate = [&](std::uint32_t segment, std::uint64_t condition) {
    return cuda::plan_segment_gate({.gate = card.gate(is_stopped),
                                    .seen = reinterpret_cast<std::uint64_t*>(seen.data()),
                                    .condition = condition,
                                    .segment = segment});
  };
  cuda::GraphSegment segment;
  for (const std::uint32_t value : values) {
    const device::PokeParams poke{
        .gate = card.gate(), .at = cuda::device_pointer<std::uint32_t>(at), .value = value};
    segment.push_back(
        {.kernel = "lh_poke", .grid = {}, .block_threads = 1, .params = cuda::KernelParams(poke)});
  }
  const cuda::StepGraph graph = TRY(cuda::StepGraph::make(
      card.context(), card.library(), {.segments = {&segment, 1}, .bound_to = {}, .gate = gate}));
  TRY(card.run(graph));
  PokedWord poked{.n_programmatic = graph.n_programmatic()};
  TRY(card.fetch(std::as_writable_bytes(std::span(&poked.value, 1)), at));
  return poked;
}

Result<bool> ask_wgmma(Card& card) {
  const cuda::MmaProbeInput question = cuda::make_mma_probe_input();
  const std::size_t a_bytes = question.a.size() * sizeof(std::uint16_t);
  const std::size_t b_bytes = question.b.size() * sizeof(std::uint16_t);
  const cuda::DeviceBuffer a = TRY(cuda::DeviceBuffer::allocate(card.context(), a_bytes));
  const cuda::DeviceBuffer b = TRY(cuda::DeviceBuffer::allocate(card.context(), b_bytes));
  const cuda::DeviceBuffer answer = TRY(cuda::DeviceBuffer::allocate(card.context(), 256));
  TRY(card.store(cuda::device_address(a.data()), std::as_bytes(std::span(question.a))));
  TRY(card.store(cuda::device_address(b.data()), std::as_bytes(std::span(question.b))));
  TRY(card.clear(cuda::device_address(answer.data()), answer.size_bytes()));
  TRY(card.run(cuda::plan_mma_probe({.gate = card.gate(),
                                     .a = reinterpret_cast<const std::uint16_t*>(a.data()),
                                     .b = reinterpret_cast<const std::uint16_t*>(b.data()),
                                     .results = reinterpret_cast<std::uint32_t*>(answer.data()),
                                     .steps = question.steps},
                                    question.n_products)));
  std::array<std::uint32_t, 2> results{};
  TRY(card.fetch(std::as_writable_bytes(std::span(results)), cuda::device_address(answer.data())));
  return cuda::wgmma_adds_as_mma(question, results);
}

}  // namespace

Result<void> probe_conditional_nodes(StageReport& report, Card& card) {
  constexpr const char* kWhat = "graphs: conditional nodes obey their gate";
  report.numbers()["conditional_nodes"] = false;
  if (!card.library().has_conditional_gate()) {
    report.unknown(kWhat, "the driver has no conditional nodes; segments run empty instead");
    return {};
  }
  const PokedWord when_live = TRY(poke_word(card, false, {1}));
  const PokedWord when_stopped = TRY(poke_word(card, true, {1}));
  const bool holds = when_live.value == 1 && when_stopped.value == 0;
  report.numbers()["conditional_nodes"] = holds;
  report.require(kWhat, holds);
  return {};
}

Result<void> probe_programmatic_edges(StageReport& report, Card& card) {
  constexpr const char* kWhat = "graphs: a kernel that starts early waits for the one before it";
  const PokedWord word = TRY(poke_word(card, false, {1, 2, 3, 4}));
  report.numbers()["programmatic_edges"] = word.n_programmatic;
  if (word.n_programmatic == 0) {
    report.unknown(kWhat, "no programmatic edges on this card; each kernel starts after the last");
    return {};
  }
  report.require(kWhat, word.value == 4);
  return {};
}

Result<void> probe_wgmma(StageReport& report, Card& card) {
  const int major = TRY(card.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  const bool has_it = major == 9;
  const bool agrees = has_it && TRY(ask_wgmma(card));
  report.numbers()["wgmma_adds_as_mma"] = agrees;
  report.measured("matmul: wgmma adds bit for bit as mma.sync",
                  !has_it  ? "no wgmma on this card"
                  : agrees ? "yes: used for many rows"
                           : "no: mma.sync for many rows too");
  return {};
}

}  // namespace leasehold::gpu_check

/// Decode steps as graphs: recorded once per shape, replayed with the same bits, stoppable inside,
/// bound to the engine's lease.
#include <catch2/catch.hpp>
#include <thread>

#include "kernels/cuda/kernel_image.hpp"
#include "tests/support/no_more_threads.hpp"
#include "tests/unit/kernels/cuda_backend/decode_rig.hpp"

namespace leasehold::testing {
namespace {

using cuda::GraphUse;

const char* const kKernels[] = {"lh_embedding",      "lh_rms_norm",
                                "lh_top_candidates", "lh_attention_decode_f16_q1",
                                "lh_prepare_tiles",  "lh_matmul_few_q8_0_1"};

std::vector<std::uint64_t> counts(const std::vector<KernelCount>& all) {
  std::vector<std::uint64_t> values;
  for (const KernelCount& one : all) values.push_back(one());
  return values;
}
std::vector<KernelCount> count_all() {
  return {std::begin(kKernels), std::end(kKernels)};
}

}  // namespace

TEST_CASE("cuda backend: a decode step is recorded per shape and replayed with the same bits") {
  const auto layout = GENERATE(MatrixLayout::Rows, MatrixLayout::RowGroups);
  DecodeRig plain({.graphs = GraphUse::None}, layout);
  plain.step();
  const GraphUse graphs = GENERATE(GraphUse::Plain, GraphUse::Gated);
  DecodeRig rig({.graphs = graphs, .segment_layers = 2}, layout);
  std::vector<std::uint64_t> first;
  for (int i = 0; i < 3; ++i) {
    CAPTURE(i, static_cast<int>(graphs));
    const KernelCount gates("lh_conditional_gate");
    const auto kernels = count_all();
    CHECK(rig.step().live == 0b111);
    CHECK(rig.backend->graph_count() == 1);
    CHECK(rig.all_logits() == plain.all_logits());
    CHECK(gates() == (graphs == GraphUse::Gated ? DecodeRig::kLayers / 2 : 0));
    if (i == 0) first = counts(kernels);
    CHECK(counts(kernels) == first);
    for (std::uint32_t row = 0; row < 3; ++row) {
      const auto top = rig.backend->top_logits(row);
      const auto logits = rig.logits(row);
      REQUIRE(top);
      CHECK(top->all_finite);
      CHECK(top->tokens.front().token == std::ranges::max_element(logits) - logits.begin());
    }
  }
  CHECK(first[0] == 1);
  CHECK(first[1] == (layout == MatrixLayout::Rows ? 2 * DecodeRig::kLayers : 0));
}

TEST_CASE(
    "cuda backend: a driver without conditional nodes replays the same bits with plain gates") {
  DecodeRig plain({.graphs = GraphUse::None});
  plain.step();
  // The optional image is the last one.
  fake_cuda_fail_after(cuda::kernel_images().size() - 1, "cuModuleLoadData",
                       GENERATE(CUDA_ERROR_INVALID_PTX, CUDA_ERROR_NO_BINARY_FOR_GPU));
  std::vector<Errc> unavailable;
  DecodeRig rig({.segment_layers = 2, .on_graphs_unavailable = [&](const Error& why) {
                   unavailable.push_back(why.code);
                 }});
  const KernelCount conditional("lh_conditional_gate");
  for (int i = 0; i < 2; ++i) {
    const KernelCount gates("lh_segment_gate");
    CHECK(rig.step().live == 0b111);
    CHECK(rig.all_logits() == plain.all_logits());
    CHECK(gates() == DecodeRig::kLayers / 2);
  }
  CHECK(conditional() == 0);
  CHECK(unavailable.empty());
  CHECK(rig.backend->graph_count() == 1);
}

#if LEASEHOLD_CUDA_EDGE_DATA
TEST_CASE("cuda backend: only kernels of one segment are joined by programmatic edges") {
  const auto layout = GENERATE(MatrixLayout::Rows, MatrixLayout::RowGroups);
  DecodeRig plain({.graphs = GraphUse::None}, layout);
  const KernelCount kernels(nullptr);
  plain.step();
  const std::uint64_t n_kernels = kernels();
  constexpr std::uint64_t kSegments = DecodeRig::kLayers / 2;
  DecodeRig rig({.segment_layers = 2}, layout);
  // The first kernel of a segment, and its gate, have plain edges; an IF node has one, too.
  const std::uint64_t plain_before = fake_cuda_call_count("cuGraphAddKernelNode");
  const std::uint64_t with_data_before = fake_cuda_call_count("cuGraphAddNode");
  rig.step();
  CHECK(fake_cuda_call_count("cuGraphAddKernelNode") - plain_before == 2 * kSegments);
  CHECK(fake_cuda_call_count("cuGraphAddNode") - with_data_before == n_kernels);
  CHECK(rig.all_logits() == plain.all_logits());
}

TEST_CASE("cuda backend: a driver that rejects programmatic edges replays the same bits") {
  DecodeRig plain({.graphs = GraphUse::None});
  plain.step();
  std::vector<Errc> unavailable;
  DecodeRig rig({.segment_layers = 2, .on_graphs_unavailable = [&](const Error& why) {
                   unavailable.push_back(why.code);
                 }});
  const bool while_adding = GENERATE(true, false);
  if (while_adding)
    fake_cuda_fail_after(1, "cuGraphAddNode", CUDA_ERROR_NOT_SUPPORTED);  // 0 is an IF node
  else
    fake_cuda_fail_next("cuGraphInstantiateWithFlags", CUDA_ERROR_INVALID_VALUE);
  const std::uint64_t before = fake_cuda_call_count("cuGraphAddKernelNode");
  for (int i = 0; i < 2; ++i) {
    CHECK(rig.step().live == 0b111);
    CHECK(rig.all_logits() == plain.all_logits());
  }
  CHECK(unavailable.empty());
  CHECK(rig.backend->graph_count() == 1);
  CHECK(fake_cuda_call_count("cuGraphAddKernelNode") - before > DecodeRig::kLayers * 8);
}
#endif

TEST_CASE("cuda backend: a step with prompt rows is launched, not recorded") {
  DecodeRig rig;
  CHECK(rig.prefill().live == 0b111);
  CHECK(rig.backend->graph_count() == 0);
}

TEST_CASE(
    "cuda backend: after the engine's lease is revoked during a graph, later segments do not run") {
  DecodeRig rig({.segment_layers = 1});
  rig.step();
  const KernelCount gates("lh_conditional_gate");
  const KernelCount norms("lh_rms_norm");
  fake_cuda_hold();
  LaunchStatus status{1};
  std::jthread engine([&] {
    required(test_card().make_current());
    status = rig.step();
  });
  while (gates() < 3) fake_cuda_run(1);
  rig.table.revoke(FakeTable::kEngineSlot);
  CHECK(engine_polls_again());
  CHECK_FALSE(rig.table.listener().refusals().empty());
  while (gates() < DecodeRig::kLayers) fake_cuda_run(1);
  fake_cuda_release();
  engine.join();
  CHECK(status.none_live());
  CHECK(gates() == DecodeRig::kLayers);
  CHECK(norms() >= 2 * 3 - 1);
  CHECK(norms() < 2 * (DecodeRig::kLayers - 1));
}

TEST_CASE("cuda backend: a tenant's revocation changes neither the graph nor the bits of others") {
  DecodeRig calm;
  calm.step();
  DecodeRig rig;
  rig.step();
  const auto before = rig.kv.bytes_of(DecodeRig::kDead);
  // Unit 0 uploads the step, unit 1 is the graph.
  rig.units.start([&](int n) {
    if (n == 0) rig.revoke(DecodeRig::kDead);
  });
  CHECK(rig.step().live == DecodeRig::kSurvivors);
  CHECK(rig.backend->graph_count() == 1);
  CHECK(rig.kv.bytes_of(DecodeRig::kDead) == before);
  for (const std::uint32_t survivor : {0u, 2u})
    CHECK(rig.logits(survivor) == calm.logits(survivor));
  CHECK(rig.step().live == 0b111);
  CHECK(rig.all_logits() == calm.all_logits());
}

TEST_CASE("cuda backend: without graphs steps have the same bits, and the callback runs once") {
  struct Refusal {
    const char* call;
    CUresult result;
    Errc told;
  };
  const auto refusal =
      GENERATE(Refusal{"cuGraphInstantiateWithFlags", CUDA_ERROR_OUT_OF_MEMORY, Errc::OutOfMemory},
               Refusal{"cuGraphUpload", CUDA_ERROR_NOT_SUPPORTED, Errc::DeviceUnsupported});
  CAPTURE(refusal.call);
  std::vector<Errc> told;
  DecodeRig rig({.on_graphs_unavailable = [&](const Error& why) { told.push_back(why.code); }});
  fake_cuda_fail_next(refusal.call, refusal.result);
  rig.step(1);
  CHECK(told == std::vector<Errc>{refusal.told});
  rig.step(1);
  CHECK(told.size() == 1);
  CHECK(rig.backend->graph_count() == 0);
  CHECK_FALSE(rig.backend->fault());
  DecodeRig with_graphs;
  with_graphs.step(1);
  with_graphs.step(1);
  CHECK(rig.all_logits() == with_graphs.all_logits());
}

TEST_CASE("cuda backend: without a thread to build a graph, steps run launch by launch") {
  const bool is_prepared = GENERATE(false, true);
  CAPTURE(is_prepared);
  DecodeRig plain({.graphs = GraphUse::None});
  plain.step();
  std::vector<Error> unavailable;
  DecodeRig rig({.on_graphs_unavailable = [&](const Error& why) { unavailable.push_back(why); }});
  const NoMoreThreads full;
  if (is_prepared) CHECK(rig.prepare() == 0);
  CHECK(rig.step().live == 0b111);
  CHECK(rig.all_logits() == plain.all_logits());
  REQUIRE(unavailable.size() == 1);
  CHECK(unavailable[0].code == Errc::SystemError);
  CHECK_THAT(unavailable[0].detail, Catch::Contains("use --graphs none"));
  CHECK_FALSE(rig.backend->fault());
}

TEST_CASE("cuda backend: a driver failure during the creation of a graph is a fault") {
  DecodeRig rig;
  fake_cuda_fail_next("cuGraphInstantiateWithFlags", CUDA_ERROR_ILLEGAL_ADDRESS);
  rig.step(1);
  REQUIRE(rig.backend->fault());
  CHECK(rig.backend->fault()->code == Errc::DeviceFault);
}

TEST_CASE("cuda backend: a graph made under an earlier engine lease is recorded again") {
  DecodeRig rig;
  rig.step(1);
  // A planted failure for the next creation of a graph.
  fake_cuda_fail_next("cuGraphInstantiateWithFlags", CUDA_ERROR_OUT_OF_MEMORY);
  rig.step(1);
  CHECK(rig.backend->graph_count() == 1);
  const auto expected = rig.all_logits();
  rig.step(2);
  CHECK(rig.backend->graph_count() == 0);
  CHECK(rig.all_logits() == expected);

  DecodeRig other;
  other.step(1);
  CHECK(other.step(2).live == 0b111);
  CHECK(other.backend->graph_count() == 1);
  CHECK(other.all_logits() == expected);
}

TEST_CASE("cuda backend: after preparing, no step makes a graph, also under new engine leases") {
  DecodeRig plain({.graphs = GraphUse::None});
  plain.step();
  DecodeRig rig({.segment_layers = 2});
  const KernelCount kernels(nullptr);
  CHECK(rig.prepare() == 3);  // rows 1, 2, 4; up to 64 positions
  CHECK(kernels() == 0);
  const auto made = [] { return fake_cuda_call_count("cuGraphInstantiateWithFlags"); };
  std::uint64_t before = made();
  for (int i = 0; i < 2; ++i) {
    CHECK(rig.step().live == 0b111);
    CHECK(rig.all_logits() == plain.all_logits());
  }
  CHECK(made() == before);

  CHECK(rig.prepare() == 3);  // nothing changed
  CHECK(made() == before);
  CHECK(rig.prepare(2) == 1);  // tenants wait, so only the shape that ran
  CHECK(made() == before + 1);
  rig.units.start([&](int n) {
    if (n == 1) rig.table.revoke(FakeTable::kEngineSlot);
  });
  CHECK(rig.prepare(3) == 0);  // the lease ended meanwhile
  rig.units.start({});
  CHECK(rig.prepare(2) == 1);
  before = made();
  CHECK(rig.step(2).live == 0b111);
  CHECK(rig.all_logits() == plain.all_logits());
  CHECK(made() == before);
}

TEST_CASE("cuda backend: a flip is refused while the driver makes a graph, and no unit waits") {
  DecodeRig calm;
  calm.step();
  DecodeRig rig;
  fake_cuda_hold_calls("cuGraphInstantiateWithFlags");
  LaunchStatus status{0};
  std::jthread engine([&] {
    required(test_card().make_current());
    status = rig.step();
  });
  CHECK(eventually([] { return fake_cuda_held_calls() == 1; }));
  rig.revoke(DecodeRig::kDead);
  CHECK(eventually([&] { return !rig.table.listener().refusals().empty(); }));
  CHECK(fake_cuda_held_calls() == 1);  // the engine waits for no driver
  fake_cuda_release_calls();
  engine.join();
  CHECK(status.live == DecodeRig::kSurvivors);
  CHECK(rig.backend->graph_count() == 1);
  for (const std::uint32_t survivor : {0u, 2u})
    CHECK(rig.logits(survivor) == calm.logits(survivor));
}

TEST_CASE(
    "cuda backend: preparing ends when the engine's lease is revoked, and is repeated later") {
  DecodeRig rig;
  rig.units.start([&](int n) {
    if (n == 5) rig.table.revoke(FakeTable::kEngineSlot);
  });
  CHECK(rig.prepare() == 0);
  rig.units.start({});
  CHECK_FALSE(rig.backend->fault());
  CHECK(rig.prepare(2) == 3);
  CHECK(rig.step(2).live == 0b111);
}

}  // namespace leasehold::testing

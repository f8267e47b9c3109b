/// How often a step and the writing of records call the driver.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "tests/unit/kernels/cuda_backend/decode_rig.hpp"

namespace leasehold::testing {
namespace {

using cuda::GraphUse;

/// Calls of one function of the driver since construction.
class CallCount {
 public:
  explicit CallCount(const char* function)
      : function_(function), before_(fake_cuda_call_count(function)) {}
  std::uint64_t operator()() const { return fake_cuda_call_count(function_) - before_; }

 private:
  const char* function_;
  std::uint64_t before_;
};

constexpr const char* kUpload = "cuMemcpyHtoDAsync";

/// Host time of one call. An assumption, because no card has been measured: orders of magnitude
/// that vendors and users report for a recent driver, rounded up.
struct CallCost {
  const char* function;
  double us;
};
constexpr CallCost kCosts[] = {
    {"cuMemcpyHtoDAsync", 2.0},  {"cuMemcpyDtoHAsync", 2.0}, {"cuLaunchKernel", 2.5},
    {"cuGraphLaunch", 6.0},      {"cuEventRecord", 0.7},     {"cuStreamWaitEvent", 0.7},
    {"cuEventSynchronize", 1.0},
};
/// While the card works, the host asks as often as it likes.
constexpr const char* kQuery = "cuEventQuery";

}  // namespace

TEST_CASE("cuda backend: records are written by one copy, one launch and one wait") {
  DecodeRig rig;
  LeasedMemory to(4096);
  DeviceRegistration reach;
  reach.add(to.at(), 4096);
  reach.open();
  const std::vector<std::byte> whole(100, std::byte{7});
  const std::uint64_t mark = 0x0102'0304'0506'0708;
  std::vector<LeasedPiece> pieces;
  for (std::uint32_t i = 0; i < 5; ++i) {
    pieces.push_back(
        {.to = to.at(i * 256), .bytes = std::as_bytes(std::span(&mark, 1)), .is_last = true});
    pieces.push_back({.to = to.at(i * 256 + 8), .bytes = whole});
  }
  const auto write = [&] {
    const auto gates = rig.table.step(DecodeRig::kSequences);
    ThreadGate gate = rig.table.gate(1);
    gate.run(*gates, {.site = LaunchSite::Commit, .layer = 0, .touches = Touches::TenantMemory},
             [&](const LaunchPermit& permit) { rig.backend->write(permit, pieces); });
  };
  write();  // allocates the staging buffer
  to.fill<std::byte>(std::vector<std::byte>(4096));
  const CallCount copies(kUpload);
  const CallCount launches("cuLaunchKernel");
  const CallCount waits("cuEventSynchronize");
  const KernelCount scatters("lh_scatter");
  write();
  CHECK(copies() == 1);
  CHECK(launches() == 1);
  CHECK(scatters() == 1);
  CHECK(waits() == 1);
  for (std::uint32_t i = 0; i < 5; ++i) {
    CHECK(std::memcmp(to.bytes() + i * 256, &mark, sizeof mark) == 0);
    CHECK(std::memcmp(to.bytes() + i * 256 + 8, whole.data(), whole.size()) == 0);
    CHECK(to.bytes()[i * 256 + 108] == std::byte{});
  }
}

TEST_CASE(
    "cuda backend: a dense layer takes five launches in int8, seven if none starts early, and "
    "eight in halves") {
  struct Expected {
    MatrixLayout layout;
    bool starts_early;
    std::uint64_t per_layer;
    std::uint64_t norms;
    const char* product;
  };
  // Norm; q, k and v; attention; output; norm; gate and up; down. Early launches compute the norms
  // of their rows. Halves gate in a launch of their own.
  const auto expected =
      GENERATE(Expected{MatrixLayout::RowGroups, true, 5, 0, "lh_matmul_early_q8_0_8"},
               Expected{MatrixLayout::RowGroups, false, 7, 2, "lh_matmul_int8_q8_0_8"},
               Expected{MatrixLayout::Rows, true, 8, 2, "lh_matmul_few_q8_0_1"});
  DecodeRig rig({.graphs = GraphUse::None, .starts_early = expected.starts_early}, expected.layout);
  const CallCount launches("cuLaunchKernel");
  const KernelCount norms("lh_rms_norm");
  const KernelCount products(expected.product);
  const KernelCount gates("lh_swiglu");
  rig.step();
  const bool is_int8 = expected.layout == MatrixLayout::RowGroups;
  constexpr std::uint64_t kOutsideLayers = 4;  // embedding, tiles of x, logits, candidates
  CHECK(launches() == expected.per_layer * DecodeRig::kLayers + kOutsideLayers);
  CHECK(norms() == expected.norms * DecodeRig::kLayers);
  CHECK(products() == (is_int8 ? 4 * DecodeRig::kLayers : 2 * DecodeRig::kLayers + 1));
  CHECK(gates() == (is_int8 ? 0 : DecodeRig::kLayers));
}

TEST_CASE("cuda backend: LEASEHOLD_CUDA_EARLY=0 keeps the launches of other cards, and the bits") {
  DecodeRig early({.graphs = GraphUse::None}, MatrixLayout::RowGroups);
  early.step();
  REQUIRE(setenv("LEASEHOLD_CUDA_EARLY", "0", 1) == 0);
  DecodeRig rig({.graphs = GraphUse::None}, MatrixLayout::RowGroups);
  REQUIRE(unsetenv("LEASEHOLD_CUDA_EARLY") == 0);
  const CallCount launches("cuLaunchKernel");
  rig.step();
  CHECK(launches() == 7 * DecodeRig::kLayers + 4);
  CHECK(rig.all_logits() == early.all_logits());
}

TEST_CASE("cuda backend: values with a format of their own take one launch more") {
  const bool starts_early = GENERATE(false, true);
  DecodeRig rig({.graphs = GraphUse::None, .starts_early = starts_early}, MatrixLayout::RowGroups,
                TensorType::Q4_0);
  const CallCount launches("cuLaunchKernel");
  const KernelCount rounded("lh_round_rows");
  rig.step();
  CHECK(launches() == (starts_early ? 6 : 8) * DecodeRig::kLayers + 4);
  CHECK(rounded() == 0);  // the norm rounds for both formats
}

TEST_CASE("cuda backend: a step with two rows of a sequence prepares heads and merges apart") {
  DecodeRig rig({.graphs = GraphUse::None}, MatrixLayout::RowGroups);
  const KernelCount heads("lh_rope_kv_append");
  const KernelCount merges("lh_attention_merge");
  const KernelCount rounded("lh_round_rows");
  const KernelCount kernels(nullptr);
  rig.prefill();
  CHECK(heads() == DecodeRig::kLayers);
  CHECK(merges() == DecodeRig::kLayers);
  CHECK(rounded() == DecodeRig::kLayers);  // attention's output
  CHECK(kernels() == 8 * DecodeRig::kLayers + 4);
}

TEST_CASE("cuda backend: between two graphs the host calls the driver nine times") {
  DecodeRig rig;
  LeasedMemory to(4096);
  DeviceRegistration reach;
  reach.add(to.at(), 4096);
  reach.open();
  const std::uint64_t mark = 1;
  const std::vector<LeasedPiece> pieces{
      {.to = to.at(), .bytes = std::as_bytes(std::span(&mark, 1)), .is_last = true},
      {.to = to.at(8), .bytes = std::as_bytes(std::span(&mark, 1))}};
  // From wait to wait: a step, and the records that it commits.
  const auto step_and_commit = [&] {
    REQUIRE(rig.step().live == 0b111);
    const auto gates = rig.table.step(DecodeRig::kSequences);
    ThreadGate gate = rig.table.gate(1);
    gate.run(*gates, {.site = LaunchSite::Commit, .layer = 0, .touches = Touches::TenantMemory},
             [&](const LaunchPermit& permit) { rig.backend->write(permit, pieces); });
  };
  step_and_commit();
  const CallCount all(nullptr);
  const CallCount queries(kQuery);
  std::vector<CallCount> counts;
  for (const CallCost& cost : kCosts) counts.emplace_back(cost.function);
  step_and_commit();
  double sum_us = 0;
  std::uint64_t known = queries();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    INFO(kCosts[i].function << ": " << counts[i]());
    sum_us += static_cast<double>(counts[i]()) * kCosts[i].us;
    known += counts[i]();
  }
  CHECK(all() == known);  // the table has a row for every function
  CHECK(all() - queries() == 9);
  CHECK(sum_us < 20);
}

TEST_CASE("cuda backend: a step uploads the mirror and block tables only if they changed") {
  const cuda::CudaOptions plain{.graphs = GraphUse::None};
  const auto uploads_of_step = [](DecodeRig& rig) {
    const CallCount uploads(kUpload);
    CHECK(rig.step().live == 0b111);
    return uploads();
  };
  DecodeRig rig(plain);
  const std::uint64_t first = uploads_of_step(rig);
  const auto before = rig.all_logits();
  CHECK(first == 3);  // the mirror, the step, the tables
  CHECK(uploads_of_step(rig) == 1);
  CHECK(rig.all_logits() == before);

  const auto with_another_block = [](DecodeRig& of) {
    std::vector<Leased<std::byte>> blocks(of.tables[0].blocks.begin(), of.tables[0].blocks.end());
    blocks[0] = blocks[1];
    return blocks;
  };
  const auto changed = with_another_block(rig);
  rig.tables[0] = BlockTableView(changed);
  CHECK(uploads_of_step(rig) == 2);
  CHECK(uploads_of_step(rig) == 1);
  DecodeRig fresh(plain);
  const auto also_changed = with_another_block(fresh);
  fresh.tables[0] = BlockTableView(also_changed);
  fresh.step();
  CHECK(rig.logits(0) == fresh.logits(0));
  CHECK(rig.logits(0) != before[0]);
}

}  // namespace leasehold::testing

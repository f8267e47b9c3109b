#include "tests/property/four_tenants.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#if LEASEHOLD_TEST_CUDA
#include "tests/support/cuda_rig.hpp"
#endif

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kTokensPerTenant = 4;

RigOptions watched(RigOptions options, UnitWatch& watch) {
  options.probe = &watch;
  return options;
}

}  // namespace

RigOptions BackendUnderTest::options(KvType kv_type) const {
#if LEASEHOLD_TEST_CUDA
  using cuda::GraphUse;
  if (is_cuda())
    return on_card({.kv_type = kv_type, .limits = {.speculate = speculate}},
                   {.graphs = threads == kCuda ? GraphUse::None : GraphUse::Gated});
#endif
  // The heads of the bundled model are too narrow for q8_0.
  return {.model_path = kv_type == KvType::Q8_0 ? test_data_path("models/kq-llama-q4_k_m.gguf")
                                                : bundled_model_path(),
          .reference = threads == 0,
          .threads = std::max(threads, 1u),
          .kv_type = kv_type,
          .limits = {.speculate = speculate}};
}

std::ostream& operator<<(std::ostream& to, const BackendUnderTest& backend) {
  if (backend.is_cuda())
    return to << (backend.threads == BackendUnderTest::kCuda ? "cuda" : "cuda with graphs");
  return backend.threads == 0 ? to << "reference" : to << "cpu, threads " << backend.threads;
}

const std::vector<std::uint32_t>& cuda_backends() {
  static const std::vector<std::uint32_t> all{
#if LEASEHOLD_TEST_CUDA
      BackendUnderTest::kCuda, BackendUnderTest::kCudaGraphs
#endif
  };
  return all;
}

std::vector<std::uint32_t> with_cuda(std::vector<std::uint32_t> others) {
  others.insert(others.end(), cuda_backends().begin(), cuda_backends().end());
  return others;
}

const std::vector<std::string>& prompts() {
  static const std::vector<std::string> texts{
      "Once upon a time",
      "The dog saw a ball.",
      "Lily",
      "One day a girl went to the park with her mother. She was happy",
      "There was a small cat",
      "Tom and Sue had a red box. They opened the box and found a big book in it. The book was old",
      "A bird",
      "The sun was warm and",
  };
  return texts;
}

bool same_bits(const Run& a, const Run& b) {
  return std::ranges::equal(a, b, [](const Logits& x, const Logits& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  });
}

void append_last_logits(const EngineRig& rig, const std::string& id, Run& run) {
  const auto logits = rig.engine().last_logits(RequestId{id});
  if (!logits.empty()) run.emplace_back(logits.begin(), logits.end());
}

PromptRequest rebind_after(EngineRig& rig, PromptRequest request, std::uint32_t steps) {
  REQUIRE(rig.submit(request));
  for (std::uint32_t i = 0; i < steps; ++i) REQUIRE(rig.step());
  rig.revoke(request.lease);
  REQUIRE(rig.step());
  RequestOutcome& outcome = rig.outcome(request.engine_request_id.value);
  REQUIRE(outcome.completions.size() == 1);
  outcome.completions.clear();
  request.emitted = outcome.tokens;
  request.rebound_from = request.lease;
  request.lease = rig.grant("t");
  REQUIRE(rig.submit(request));
  return request;
}

FourTenants::FourTenants(RigOptions options) : rig(watched(std::move(options), watch)) {}

PromptRequest FourTenants::request(std::uint32_t tenant) const {
  return rig.request("t" + std::to_string(tenant), leases_[tenant], request_id(tenant),
                     rig.encode(prompts()[tenant]), kTokensPerTenant);
}

void FourTenants::begin() {
  rig.clear_outcomes();
  for (std::uint32_t t = 0; t < kTenants; ++t) leases_[t] = rig.grant("t" + std::to_string(t));
  for (std::uint32_t t = 0; t < kTenants; ++t) {
    if (t != kLate) REQUIRE(rig.submit(request(t)));
  }
  for (int i = 0; i < 2; ++i) REQUIRE(rig.step());
  REQUIRE(rig.submit(request(kLate)));
}

Result<StepReport> FourTenants::watched_step(std::size_t at, std::function<void()> act) {
  watch.start(at, std::move(act));
  Result<StepReport> report = rig.step();
  watch.stop();
  return report;
}

FourTenants::Undisturbed FourTenants::run_undisturbed() {
  begin();
  REQUIRE(watched_step());
  Undisturbed calm{.units = watch.units(), .after_step = tokens(), .at_end = {}};
  rig.run();
  calm.at_end = tokens();
  end();
  return calm;
}

SequenceMask FourTenants::mask_of(std::uint32_t tenant) const {
  const auto& running = rig.engine().scheduler().running().all();
  const auto found = std::ranges::find_if(running, [&](const auto& sequence) {
    return sequence->request.engine_request_id.value == request_id(tenant);
  });
  return SequenceMask{1} << (found - running.begin());  // one that is not admitted comes last
}

void FourTenants::check_units_after_act(SequenceMask mask) const {
  REQUIRE(watch.acted());
  const std::uint32_t actor = watch.units()[watch.at()].thread;
  for (const auto& [thread, count] : watch.units_after_act(mask)) {
    CAPTURE(thread, actor, count);
    REQUIRE(count <= (thread == actor ? 0 : 1));
  }
}

void FourTenants::end() {
  for (const LeaseId lease : leases_) rig.drop(lease);
  (void)rig.engine().take_events();
}

FourTenants::Tokens FourTenants::tokens() {
  Tokens all;
  for (std::uint32_t t = 0; t < kTenants; ++t) all[t] = outcome(t).tokens;
  return all;
}

}  // namespace leasehold::testing

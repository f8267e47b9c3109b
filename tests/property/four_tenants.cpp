#include "tests/property/four_tenants.hpp"

#include <stdexcept>

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
    return on_card({.kv_type = kv_type},
                   {.graphs = threads == kCuda ? GraphUse::None : GraphUse::Gated});
#endif
  return {.reference = threads == 0, .threads = std::max(threads, 1u), .kv_type = kv_type};
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

FourTenants::FourTenants(RigOptions options) : rig(watched(std::move(options), watch)) {}

PromptRequest FourTenants::request(std::uint32_t tenant) const {
  return rig.request("t" + std::to_string(tenant), leases_[tenant], request_id(tenant),
                     rig.encode(prompts()[tenant]), kTokensPerTenant);
}

void FourTenants::begin() {
  rig.clear_outcomes();
  for (std::uint32_t t = 0; t < kTenants; ++t) leases_[t] = rig.grant("t" + std::to_string(t));
  const auto submit = [this](std::uint32_t t) {
    if (!rig.submit(request(t))) throw std::runtime_error("a request of the scenario was refused");
  };
  for (std::uint32_t t = 0; t < kTenants; ++t) {
    if (t != kLate) submit(t);
  }
  for (int i = 0; i < 2; ++i) {
    if (!rig.step()) throw std::runtime_error("a step before the scenario failed");
  }
  submit(kLate);
}

void FourTenants::end() {
  for (const LeaseId lease : leases_) rig.drop(lease);
  (void)rig.engine().take_events();
}

std::array<std::vector<TokenId>, FourTenants::kTenants> FourTenants::tokens() {
  std::array<std::vector<TokenId>, kTenants> all;
  for (std::uint32_t t = 0; t < kTenants; ++t) all[t] = outcome(t).tokens;
  return all;
}

}  // namespace leasehold::testing

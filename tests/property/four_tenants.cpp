#include "tests/property/four_tenants.hpp"

#include <stdexcept>

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kTokens = 4;

RigOptions watched(RigOptions options, UnitWatch& watch) {
  options.probe = &watch;
  return options;
}

}  // namespace

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
                     rig.encode(prompts()[tenant]), kTokens);
}

void FourTenants::begin() {
  rig.forget_outcomes();
  for (std::uint32_t t = 0; t < kTenants; ++t) leases_[t] = rig.grant("t" + std::to_string(t));
  const auto submit = [this](std::uint32_t t) {
    if (!rig.submit(request(t))) throw std::runtime_error("a request of the scene was refused");
  };
  for (std::uint32_t t = 0; t < kTenants; ++t) {
    if (t != kLate) submit(t);
  }
  for (int i = 0; i < 2; ++i) {
    if (!rig.step()) throw std::runtime_error("a step before the scene failed");
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

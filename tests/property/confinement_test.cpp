/// What goes wrong in one request ends that request with its reason. Every other request gets the
/// same tokens in the same steps as without it, and waits for no more work.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/property/damaged_model.hpp"
#include "tests/property/misfortunes.hpp"

namespace leasehold::testing {

TEST_CASE("confinement: what goes wrong in one request changes no token and no step of another") {
  const std::string model = model_with_nan_embedding(kPoisonedToken);
  ConfinementScene calm(model, {.is_faulty = false});
  const BystanderRun expected = run_bystanders(calm, {});
  for (const auto& tokens : expected.timeline) REQUIRE(tokens.size() == kBystanderTokens);
  for (const Misfortune& misfortune : misfortunes()) {
    CAPTURE(misfortune.what);
    ConfinementScene scene(model, {});
    const BystanderRun run = run_bystanders(scene, misfortune);
    CHECK(run.timeline == expected.timeline);
    ConfinementScene harmless(model, {.is_faulty = false});
    const BystanderRun twin = run_bystanders(harmless, misfortune);
    CHECK(twin.timeline == expected.timeline);
    CHECK(run.units <= twin.units);
  }
  std::filesystem::remove(model);
}

}  // namespace leasehold::testing

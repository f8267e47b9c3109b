/// Random texts, each disturbed a few times in any of the ways of `Recovery`.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/property/recovery_workload.hpp"
#include "tests/support/generated_model.hpp"

namespace leasehold::testing {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

}  // namespace

// RECOVERIES=10000 SEED=3 disturbs as many texts, from this seed on.
TEST_CASE("recovery: disturbed in any way, a text is the undisturbed one, each position once") {
  const std::uint64_t texts = number_from("RECOVERIES", 2000);
  const std::uint64_t seed = number_from("SEED", 1);
  CAPTURE(seed, texts);
  const GeneratedModel model(family_named("llama"));
  const std::vector<UndisturbedText> undisturbed = undisturbed_texts(model.path());
  RecoveryWorkload workload(seed, model.path(), undisturbed);

  workload.run(texts);

  std::string reached;
  for (std::size_t i = 0; i < kRecoveries; ++i) {
    const auto recovery = static_cast<Recovery>(i);
    reached += std::string(name(recovery)) + " " + std::to_string(workload.reached(recovery)) + " ";
  }
  INFO(reached << "; disturbed again before a token " << workload.disturbed_again << ", preempted "
               << workload.preempted << ", restarted from the first token "
               << workload.restarted_at_start);
  for (std::size_t i = 0; i < kRecoveries; ++i) {
    CAPTURE(name(static_cast<Recovery>(i)));
    CHECK(workload.reached(static_cast<Recovery>(i)) >= texts / 20);
  }
  CHECK(workload.disturbed_texts > texts * 2 / 3);
  CHECK(workload.disturbed_again > texts / 20);
  CHECK(workload.preempted > texts / 100);
  CHECK(workload.restarted_at_start > texts / 200);
}

}  // namespace leasehold::testing

/// The text does not depend on the backend, the SIMD path, the number of threads, proposals or
/// revocations.
#include <catch2/catch.hpp>

#include "kernels/cpu/row_kernels.hpp"
#include "tests/support/system.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {
namespace {

const TenantSpec kAsked{
    .tenant = "ann", .max_tokens = 60, .more = {"--temperature", "0.9", "--seed", "5"}};

/// The tokens from a worker with these arguments.
std::vector<std::int32_t> tokens_by(std::vector<std::string> arguments) {
  System system({.worker_arguments = std::move(arguments)});
  system.admit("ann");
  return system.undisturbed(kAsked);
}

/// A worker of a small model of the architecture.
std::unique_ptr<System> system_of(const std::string& architecture,
                                  const std::vector<std::string>& more) {
  auto system = std::make_unique<System>(SystemSpec{.start_worker = false});
  const std::string name = "models-2026/tiny-" + architecture + "-f32.gguf";
  system->start_ready_worker_on(test_data_path(name), "w1", more);
  system->admit("ann");
  return system;
}

}  // namespace

TEST_CASE("same text: by plain loops, and by every SIMD path with any number of threads") {
  const std::string arithmetic = GENERATE("f32", "int8");
  CAPTURE(arithmetic);
  const auto reference = tokens_by({"--arithmetic", arithmetic, "--backend", "reference"});
  REQUIRE(reference.size() == kAsked.max_tokens);
  const std::pair<SimdPath, const char*> ways[] = {{SimdPath::Scalar, "2"},
                                                   {SimdPath::Avx2, "1"},
                                                   {SimdPath::AvxVnni, "2"},
                                                   {SimdPath::Avx512, "3"},
                                                   {SimdPath::Amx, "2"}};
  for (const auto& [path, threads] : ways) {
    if (!cpu_has(path)) continue;
    INFO(name(path));
    CHECK(tokens_by({"--arithmetic", arithmetic, "--simd", std::string(name(path)), "--threads",
                     threads}) == reference);
  }
}

TEST_CASE("same text: a worker uses the SIMD path of its options and logs it") {
  for (const SimdPath path : kSimdPaths) {
    if (!cpu_has(path)) continue;
    System system({.worker_arguments = {"--simd", std::string(name(path))}});
    CHECK(system.worker_log().find("backend=cpu-" + std::string(name(path))) != std::string::npos);
  }
}

TEST_CASE("same text: a worker multiplies quantised weights in int8 unless an option says f32") {
  const auto check = [](std::vector<std::string> arguments, const std::string& arithmetic) {
    System system({.worker_arguments = std::move(arguments)});
    CHECK(system.view().workers().value().at(0).arithmetic == arithmetic);
    CHECK_THAT(system.worker_log(), Catch::Contains(" arithmetic=" + arithmetic));
  };
  check({}, "int8");
  check({"--arithmetic", "auto"}, "int8");
  check({"--arithmetic", "f32"}, "f32");
}

TEST_CASE("same text: with proposals, leases of single tensors and a revocation") {
  const TenantSpec spec{.tenant = "ann", .max_tokens = 80, .rebind = true};
  const std::string architecture = GENERATE("smollm3", "phi3", "mistral3", "granite");
  CAPTURE(architecture);
  const auto alone = system_of(architecture, {})->undisturbed(spec);
  REQUIRE(alone.size() == spec.max_tokens);
  const auto system = system_of(architecture, {"--speculate", "4", "--weights-scope", "tensor"});
  const auto ann = system->start_streaming(spec, 10);

  system->revoke_mid_request("ann");

  check_whole(*ann, alone);
  CHECK(ann->record().leases.size() == 2);
}

TEST_CASE("same text: a longrope model names the divisors of a short context in its texts") {
  const auto arithmetic = [](const std::string& max_context) {
    const auto system = system_of("phi3", {"--max-context", max_context});
    return system->view().workers().value().at(0).text_identity.value().arithmetic;
  };
  CHECK(arithmetic("64") == "f32_short_rope");
  CHECK(arithmetic("65") == "f32");
}

}  // namespace leasehold::testing

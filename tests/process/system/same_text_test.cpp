/// The text does not depend on the backend, the SIMD path or the number of threads.
#include <catch2/catch.hpp>

#include "kernels/cpu/row_kernels.hpp"
#include "tests/support/system.hpp"

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

}  // namespace leasehold::testing

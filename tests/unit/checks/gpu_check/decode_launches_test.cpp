// The launches of a decode step that the stage speed reports, on the fake driver.
#include <catch2/catch.hpp>

#include "tests/checks/gpu_check/bench_cases.hpp"
#include "tests/checks/gpu_check/stages.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
using namespace leasehold::gpu_check;

TEST_CASE(
    "gpu-check: a step of a dense F16 model has eight launches for each layer and five others") {
  const auto folder = TemporaryDirectory::create("gpu-check").value();
  for (const std::uint32_t layers : {2u, 3u}) {
    BenchCase one{.title = "F16",
                  .shape = {.layers = layers,
                            .embd = 256,
                            .heads = 2,
                            .kv_heads = 2,
                            .ffn = 512,
                            .vocab = 320,
                            .context = 1024},
                  .batches = {1, 2},
                  .context = 512,
                  .repeats = {.warm = 0, .count = 1}};
    one.file = write_shape(one.shape, Mix::F16, folder.file("shape.gguf")).value();
    const auto card = Card::open(0).value();
    StageReport report("speed", folder.file("speed.json"));

    bench_decode(report, *card, one, {.copy_bytes_per_s = 1e9}).value();

    const Json costs = report.numbers().at("gate_cost");
    REQUIRE(costs.size() == 2);
    for (const Json& cost : costs) CHECK(cost.at("launches") == 8 * layers + 5);
  }
}

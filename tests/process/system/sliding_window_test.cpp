/// A model with a sliding window serves texts up to its width and refuses longer ones.
#include <catch2/catch.hpp>

#include "common/errc.hpp"
#include "tests/support/system.hpp"
#include "tools/make_model/write_model.hpp"

namespace leasehold::testing {

TEST_CASE("sliding window: a request longer than the window is refused") {
  System system({.worker_arguments = {}, .start_worker = false, .model_name = "window.gguf"});
  const make_model::ModelRequest window{.shape = {.layers = 2,
                                                  .embd = 64,
                                                  .heads = 4,
                                                  .kv_heads = 2,
                                                  .ffn = 64,
                                                  .vocab = 300,
                                                  .context = 512,
                                                  .window = 64}};
  REQUIRE(make_model::write_model(window, system.directory() / "window.gguf", [](auto, auto) {}));
  system.start_ready_worker("w1");
  system.admit("ann");
  const auto too_long = system.start_tenant({.tenant = "ann", .prompt = std::string(80, '7')});
  CHECK(too_long->finish() == exit_code(Errc::PromptTooLong));
  CHECK_THAT(
      too_long->record().failed.value_or(""),
      Catch::Contains("sliding window, beyond which this worker does not compute, holds 64"));
  const auto up_to_it = system.start_tenant({.tenant = "ann", .prompt = std::string(40, '7')});
  CHECK(up_to_it->finish() == 0);
  CHECK(up_to_it->record().completed == "ContextFull");
  CHECK(up_to_it->record().tokens.size() < 30);
}

}  // namespace leasehold::testing

// The demo with the real broker, worker, tenants and operator.
#include <filesystem>

#include <catch2/catch.hpp>

#include "tests/process/tools/program_run.hpp"

using namespace leasehold;

namespace {

const std::string kModel =
    std::string(LEASEHOLD_SOURCE_DIR) + "/tools/models/leasehold-stories-q8_0.gguf";
constexpr auto kPatience = std::chrono::seconds(240);

}  // namespace

TEST_CASE("demo: every promise is kept") {
  ProgramRun run("leasehold-demo", {"--bin-dir", LEASEHOLD_BIN_DIR, "--model", kModel, "--plain",
                                    "--max-tokens", "120", "--slow-motion-us", "50"});

  const int code = run.finish([] {}, kPatience);

  INFO(run.output << run.errors());
  CHECK(code == 0);
  CHECK(run.output.find("All promises kept.") != std::string::npos);
  CHECK(run.output.find("FAILED") == std::string::npos);
}

TEST_CASE("demo: a worker that cannot start is named, with the end of its log") {
  ProgramRun run("leasehold-demo",
                 {"--bin-dir", LEASEHOLD_BIN_DIR, "--model", "/nowhere/model.gguf", "--plain"});

  CHECK(run.finish([] {}, kPatience) == exit_code(Errc::ConnectionLost));
  CHECK(run.errors().find("the worker ended") != std::string::npos);
  CHECK(run.errors().find("/nowhere/model.gguf") != std::string::npos);
}

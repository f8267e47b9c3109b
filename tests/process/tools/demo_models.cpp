#include "tests/process/tools/demo_models.hpp"

#include "tests/process/tools/program_run.hpp"

namespace leasehold::testing {

void check_demo(const std::string& model_path) {
  constexpr auto kTimeout = std::chrono::minutes(20);
  ProgramRun run("leasehold-demo", {"--bin-dir", program_dir(), "--model", model_path, "--plain",
                                    "--max-tokens", "120", "--slow-motion-us", "50"});
  const int code = run.finish([] {}, kTimeout);
  INFO(model_path << '\n' << run.output << run.errors());
  CHECK(code == 0);
  CHECK(run.output.find("All checks passed.") != std::string::npos);
}

}  // namespace leasehold::testing

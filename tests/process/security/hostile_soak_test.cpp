// The hostile mode of the soak, short and without limits on speed.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/process/tools/program_run.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"

using namespace leasehold;

TEST_CASE("security: an attack that does not exist cannot be left out") {
  ProgramRun run("leasehold-soak", {"--bin-dir", program_dir(), "--model", bundled_model_path(),
                                    "--hostile", "--without", "nope"});
  CHECK(run.finish([] {}) == 2);
  const std::string printed = run.errors();
  CHECK(printed.find("nope") != std::string::npos);
  CHECK(printed.find("long lines") != std::string::npos);
}

TEST_CASE("security: all attacks at once leave honest texts, processes and memory as they are") {
  const auto directory = TemporaryDirectory::create("hostile-test").value();
  ProgramRun run("leasehold-soak",
                 {"--bin-dir", program_dir(), "--model", bundled_model_path(), "--hostile",
                  "--seconds", "4", "--max-tokens", "120", "--out", directory.path()});

  const int code = run.finish([] {}, std::chrono::minutes(10));

  INFO(run.output << run.errors());
  CHECK(code == 0);
  std::ifstream file(directory.file("hostile.json"));
  const auto report = nlohmann::json::parse(file);
  CHECK(report.at("attackers").at("attacks").size() >= 12);
  for (const auto& check : report.at("checks")) CHECK(check.at("ok") == true);
}

// The demo with the real broker, worker, tenants and operator.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/process/tools/program_run.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"

using namespace leasehold;

namespace {

const std::string kModel = bundled_model_path();
constexpr auto kTimeout = std::chrono::minutes(20);

/// A directory for the temporary files of programs that are started while this object lives.
struct TemporaryFiles {
  TemporaryDirectory directory = TemporaryDirectory::create("demo-test").value();
  Variable variable{"TMPDIR", directory.path()};
  /// Number of directories that the demo created and did not remove.
  auto left_behind() const {
    return std::ranges::count_if(std::filesystem::directory_iterator(directory.path()),
                                 [](const auto& entry) { return entry.is_directory(); });
  }
};

}  // namespace

TEST_CASE("demo: a missing model ends the demo with the worker's error") {
  TemporaryFiles files;
  ProgramRun run("leasehold-demo", {"--bin-dir", program_dir(), "--model", "/nowhere.gguf"});
  CHECK(run.finish([] {}, kTimeout) == exit_code(Errc::FileNotFound));
  CHECK(run.errors().find("the worker ended with") != std::string::npos);
}

TEST_CASE("demo: a report that cannot be written fails before any program starts") {
  ProgramRun run("leasehold-demo",
                 {"--bin-dir", "/nowhere", "--model", kModel, "--out", "/nowhere/report"});
  CHECK(run.finish([] {}, kTimeout) == exit_code(Errc::FileNotFound));
  CHECK(run.errors().find("/nowhere/report") != std::string::npos);
}

TEST_CASE("demo: every promise is kept") {
  ProgramRun run("leasehold-demo", {"--bin-dir", program_dir(), "--model", kModel, "--plain",
                                    "--max-tokens", "120", "--slow-motion-us", "50"});

  const int code = run.finish([] {}, kTimeout);

  INFO(run.output << run.errors());
  CHECK(code == 0);
  CHECK(run.output.find("All checks passed.") != std::string::npos);
  CHECK(run.output.find("FAILED") == std::string::npos);
}

TEST_CASE("demo: a worker that cannot start is named, with the end of its log") {
  const TemporaryFiles files;
  ProgramRun run("leasehold-demo",
                 {"--bin-dir", program_dir(), "--model", "/nowhere/model.gguf", "--plain"});

  CHECK(run.finish([] {}, kTimeout) == exit_code(Errc::FileNotFound));
  CHECK(run.errors().find("the worker ended") != std::string::npos);
  CHECK(run.errors().find("/nowhere/model.gguf") != std::string::npos);
  CHECK(files.left_behind() == 1);
}

TEST_CASE("demo: Ctrl-C ends all its programs and removes its files") {
  const TemporaryFiles files;
  ProgramRun run("leasehold-demo", {"--bin-dir", program_dir(), "--model", kModel, "--plain"});
  bool interrupted = false;

  const int code = run.finish(
      [&] {
        const bool is_running = run.output.find("Side by side") != std::string::npos;
        if (is_running && !interrupted) interrupted = run.child.signal(SIGINT).has_value();
      },
      kTimeout);

  CHECK(code == 130);
  CHECK(files.left_behind() == 0);
}

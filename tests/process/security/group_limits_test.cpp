// Limits of a control group: refused typed at start, or named; no program ends by an exception.
// Needs a control group that the test may create, so it runs as root.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/child_process.hpp"
#include "tests/support/required.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {
namespace {

/// A control group of either version with one limit; empty where none can be created.
class ControlGroup {
 public:
  /// `limit`: the file's name in version 1 and in version 2.
  ControlGroup(const std::string& controller, const std::string& limit_v1,
               const std::string& limit_v2, const std::string& value) {
    const std::filesystem::path root = "/sys/fs/cgroup";
    const bool is_v1 = std::filesystem::exists(root / controller);
    if (!is_v1) std::ofstream(root / "cgroup.subtree_control") << "+" + controller;
    path_ = (is_v1 ? root / controller : root) / ("leasehold-test-" + std::to_string(::getpid()));
    std::error_code error;
    std::filesystem::create_directory(path_, error);
    std::ofstream limit(path_ / (is_v1 ? limit_v1 : limit_v2));
    exists_ = !error && static_cast<bool>(limit << value << std::flush);
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  ~ControlGroup() { ::rmdir(path_.c_str()); }

  bool exists() const { return exists_; }

  /// Runs a program in the group to its end.
  struct End {
    int exit_code;
    std::string log;
  };
  End run(const std::string& program, const std::string& arguments) const {
    const auto directory = TemporaryDirectory::create("group").value();
    const std::string log = directory.file("log");
    const std::string script = "echo $$ > " + (path_ / "cgroup.procs").string() + " && exec " +
                               program_path(program) + " " + arguments;
    Child child = required(Child::start({.argv = {"/bin/sh", "-c", script}, .log_path = log}));
    const int status = exit_status_of(child);
    std::ifstream file(log);
    return {status, {std::istreambuf_iterator<char>(file), {}}};
  }

 private:
  std::filesystem::path path_;
  bool exists_ = false;
};

}  // namespace

TEST_CASE("group limits: a capacity beyond the group's memory is refused with its file") {
  const ControlGroup group("memory", "memory.limit_in_bytes", "memory.max", "67108864");
  if (!group.exists()) {
    WARN("needs a control group of its own");
    return;
  }
  const auto directory = TemporaryDirectory::create("group").value();
  const std::string socket = "--socket " + directory.file("s");
  const auto refused = group.run("leasehold-broker", socket + " --capacity 512MiB");
  CHECK(refused.exit_code == exit_code(Errc::BadRequest));
  CHECK_THAT(refused.log, Catch::Contains("--capacity is 536870912 bytes, but this control group "
                                          "has 67108864 bytes") &&
                              Catch::Contains("leasehold-test-"));
  const auto both =
      group.run("leasehold-broker", socket + " --capacity 48MiB --swap-capacity 48MiB");
  CHECK(both.exit_code == exit_code(Errc::BadRequest));
  CHECK_THAT(both.log, Catch::Contains("--capacity plus --swap-capacity"));
}

TEST_CASE("group limits: a program that may start no thread says which limit to raise") {
  for (const char* threads : {"1", "2", "3"}) {
    CAPTURE(threads);
    const ControlGroup group("pids", "pids.max", "pids.max", threads);
    if (!group.exists()) {
      WARN("needs a control group of its own");
      return;
    }
    const auto directory = TemporaryDirectory::create("group").value();
    const auto worker =
        group.run("leasehold-worker", "--broker " + directory.file("b") + " --broker-timeout-ms 0" +
                                          " --listen " + directory.file("w") + " --model " +
                                          bundled_model_path());
    CHECK(worker.exit_code == exit_code(Errc::SystemError));
    CHECK_THAT(worker.log, Catch::Contains("cannot start") && Catch::Contains("pids.max"));
    const auto broker = group.run("leasehold-broker", "--socket " + directory.file("s") +
                                                          " --capacity 2MiB --state-dir " +
                                                          directory.path().string());
    CHECK(broker.exit_code == exit_code(Errc::SystemError));
    CHECK_THAT(broker.log, Catch::Contains("cannot start") && Catch::Contains("pids.max"));
  }
}

}  // namespace leasehold::testing

// Exit codes, stdout and stderr of the programs.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/cli/print_error.hpp"
#include "common/cli/version.hpp"
#include "common/machine/cpu_quota.hpp"
#include "common/machine/cpu_set.hpp"
#include "tests/process/tools/program_run.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"
#include "tests/unit/ipc/client/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::client;

namespace {

/// Lets the servers of `world` answer while a program runs.
std::function<void()> serving(World& world) {
  return [&world] { world.io.run_for(std::chrono::milliseconds(5)); };
}

std::vector<std::string> tenant_arguments(const World& world) {
  return {"--socket",     world.directory / "broker.sock",
          "--tenant",     "A",
          "--prompt",     "Once",
          "--request-id", "req-1"};
}

/// The description in one line of a program's help; empty for other lines. CLI11 indents names by
/// two blanks, and descriptions by 30 where they do not fit beside the name.
std::string help_description(const std::string& line) {
  if (!line.starts_with("  ")) return "";
  const auto gap = line.starts_with(std::string(30, ' ')) ? 0 : line.find("  ", 2);
  const auto begin = gap == std::string::npos ? gap : line.find_first_not_of(' ', gap);
  return begin == std::string::npos ? "" : line.substr(begin);
}

}  // namespace

TEST_CASE("programs: without a broker each ends with the exit code of the error") {
  const std::string path = "/nowhere/broker.sock";
  ProgramRun brokerctl("brokerctl", {"--socket", path, "status"});
  CHECK(brokerctl.finish() == exit_code(Errc::FileNotFound));
  CHECK(brokerctl.output.empty());
  CHECK(brokerctl.errors().find("start leasehold-broker") != std::string::npos);

  ProgramRun tenant("leasehold-tenant", {"--socket", path, "--tenant", "A", "--prompt", "x"});
  CHECK(tenant.finish() == exit_code(Errc::FileNotFound));
  CHECK(tenant.output.empty());
  CHECK(tenant.errors().find("start leasehold-broker") != std::string::npos);
}

TEST_CASE("programs: wrong usage exits with 2, leaves stdout empty, and names the program") {
  std::vector<std::string> programs{"brokerctl", "leasehold-tenant", "leasehold-demo",
                                    "leasehold-broker", "leasehold-worker"};
  // Built where CUDA's headers are.
  const std::string device_agent = "leasehold-device-agent";
  if (std::filesystem::exists(program_dir() + "/" + device_agent)) programs.push_back(device_agent);
  for (const std::string& program : programs) {
    CAPTURE(program);
    ProgramRun run(program, {"--no-such-option"});
    CHECK(run.finish() == 2);
    CHECK(run.output.empty());
    CHECK(run.errors().starts_with(program + ": "));
    CHECK(run.errors().find("; next: ") != std::string::npos);
  }
}

TEST_CASE("programs: an empty option value is wrong usage") {
  for (const std::string option : {"--state-dir", "--event-log"}) {
    CAPTURE(option);
    ProgramRun run("leasehold-broker", {option, ""});
    CHECK(run.finish() == 2);
    CHECK(run.errors().find(option) != std::string::npos);
  }
}

TEST_CASE("programs: the printed configuration of broker and worker is one that they accept") {
  const TemporaryDirectory directory = TemporaryDirectory::create("config").value();
  const std::vector<std::vector<std::string>> commands{
      {"leasehold-broker", "--capacity", "1GiB", "--socket-mode", "0600", "--worker-uid", "7"},
      {"leasehold-worker", "--broker", "/b", "--model", "/m", "--listen", "/l", "--threads", "2"}};
  for (const auto& command : commands) {
    const std::string& program = command.front();
    CAPTURE(program);
    std::vector<std::string> words(command.begin() + 1, command.end());
    words.emplace_back("--print-config");
    ProgramRun first(program, words);
    CHECK(first.finish() == 0);
    const std::string file = directory.path() / "config.toml";
    std::ofstream(file) << first.output;

    ProgramRun second(program, {"--config", file, "--print-config"});
    CHECK(second.finish() == 0);
    CHECK(second.output == first.output);
    ProgramRun check(program, {"--config", file, "--check-config"});
    CHECK(check.finish() == 0);
    CHECK(check.output.empty());
    CHECK(check.errors().empty());
    std::ofstream(file, std::ios::app) << "log-levl = 'info'\n";
    ProgramRun wrong(program, {"--config", file, "--check-config"});
    CHECK(wrong.finish() == 2);
    CHECK(wrong.errors().find("did you mean 'log-level'?") != std::string::npos);
  }
}

TEST_CASE("programs: a worker has a thread per core that it may use, or of --compute-cpus") {
  const auto threads_with = [](std::vector<std::string> words) {
    words.emplace_back("--print-config");
    ProgramRun worker("leasehold-worker", words);
    CHECK(worker.finish() == 0);
    const auto begin = worker.output.find("\nthreads = ");
    REQUIRE(begin != std::string::npos);
    return std::stoi(worker.output.substr(begin + 11));
  };
  const CpuSet all = CpuSet::of_this_thread();
  const auto cores = static_cast<double>(all.count());
  if (all.count() == 1) WARN("this test may use one core; it cannot tell threads from cores");
  if (cpu_quota().value_or(cores) < cores) {
    CHECK(threads_with({}) < std::max(2.0, std::ceil(*cpu_quota())));
  } else {
    CHECK(threads_with({}) == std::min<int>(63, static_cast<int>(all.count())));
  }
  int first = 0;
  while (!all.contains(CpuSet::parse(std::to_string(first)).value())) ++first;
  const std::string core = std::to_string(first);
  CHECK(threads_with({"--compute-cpus", core}) == 1);
  CHECK(threads_with({"--compute-cpus", core, "--threads", "3"}) == 3);
  const TemporaryDirectory directory = TemporaryDirectory::create("config").value();
  const std::string file = directory.path() / "config.toml";
  std::ofstream(file) << "compute-cpus = '" << core << "'\n";
  CHECK(threads_with({"--config", file}) == 1);
  std::ofstream(file, std::ios::app) << "threads = 3\n";
  CHECK(threads_with({"--config", file}) == 3);
  const ScopedCpuAffinity pinned(CpuSet::parse(core).value());  // the program inherits it
  CHECK(threads_with({}) == 1);
}

TEST_CASE("programs: an invalid worker name is wrong usage") {
  ProgramRun worker("leasehold-worker", {"--broker", "/none", "--model", "/none", "--listen",
                                         "/none", "--name", "w 9"});
  CHECK(worker.finish() == 2);
  CHECK(worker.errors().find("--name: ") != std::string::npos);
}

TEST_CASE("programs: an impossible host name and an impossible port are wrong usage") {
  ProgramRun worker("leasehold-worker", {"--broker", "/nowhere/broker.sock", "--listen",
                                         "/nowhere/w.sock", "--model", "m", "--host-name", "a b"});
  CHECK(worker.finish() == 2);
  CHECK(worker.errors().find("'a b' is not a host name") != std::string::npos);
  ProgramRun monitor("leasehold-monitor",
                     {"--broker", "/nowhere/broker.sock", "--worker-metrics", "127.0.0.1:0"});
  CHECK(monitor.finish() == 2);
  CHECK(monitor.errors().find("'127.0.0.1:0' has port 0") != std::string::npos);
}

TEST_CASE("programs: help goes to stdout and names the program without its path") {
  for (const std::string program : {"brokerctl", "leasehold-broker", "leasehold-worker"}) {
    CAPTURE(program);
    ProgramRun run(program, {"--help"});
    CHECK(run.finish() == 0);
    CHECK(run.output.find("Usage: " + program + " ") != std::string::npos);
    CHECK(run.errors().empty());
  }
}

TEST_CASE("programs: every line of help starts with a capital and has no full stop") {
  const std::vector<std::vector<std::string>> commands{{"brokerctl"},
                                                       {"brokerctl", "revoke"},
                                                       {"brokerctl", "drain"},
                                                       {"brokerctl", "undrain"},
                                                       {"brokerctl", "leases"},
                                                       {"brokerctl", "tenants", "admit"},
                                                       {"brokerctl", "quarantine"},
                                                       {"brokerctl", "events"},
                                                       {"brokerctl", "actions"},
                                                       {"brokerctl", "explain"},
                                                       {"leasehold-tenant"}};
  for (std::vector<std::string> command : commands) {
    command.push_back("--help");
    ProgramRun run(command.front(), {command.begin() + 1, command.end()});
    CHECK(run.finish() == 0);
    std::istringstream lines(run.output);
    int checked = 0;
    for (std::string line; std::getline(lines, line);) {
      const std::string text = help_description(line);
      if (text.empty()) continue;
      CAPTURE(line);
      CHECK_FALSE(std::islower(static_cast<unsigned char>(text.front())));
      CHECK(text.back() != '.');
      ++checked;
    }
    CHECK(checked >= 2);
  }
}

namespace {

/// From `set(programs …)` of the package.
std::vector<std::string> installed_programs() {
  std::ifstream file(source_dir() + "/tools/package/CMakeLists.txt");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("set(programs ")) continue;
    std::istringstream words(line.substr(13, line.size() - 14));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

}  // namespace

TEST_CASE("programs: each installed program prints a manual page that groff renders") {
  const auto programs = installed_programs();
  CHECK(programs.size() >= 6);
  const TemporaryDirectory directory = TemporaryDirectory::create("man").value();
  for (const std::string& program : programs) {
    CAPTURE(program);
    ProgramRun run(program, {program == "brokerctl" ? "man" : "--man"});
    CHECK(run.finish() == 0);
    CHECK(run.output.starts_with(".TH "));
    CHECK(run.output.contains(".SH OPTIONS"));
    CHECK(run.output.contains("\\-\\-help"));
    std::ofstream(directory.file(program)) << run.output;
    const std::string warnings = directory.file(program + ".warnings");
    const std::string render =
        "groff -man -Tutf8 -ww -z '" + directory.file(program) + "' >'" + warnings + "' 2>&1";
    CHECK(std::system(render.c_str()) == 0);
    CHECK(file_bytes(warnings) == "");
  }
}

TEST_CASE("programs: --version prints the version") {
  for (const char* program : {"brokerctl", "leasehold-tenant", "leasehold-demo", "leasehold-broker",
                              "leasehold-worker"}) {
    ProgramRun run(program, {"--version"});
    CHECK(run.finish() == 0);
    CHECK(run.output == std::string(program) + " " + std::string(version()) + "\n");
  }
}

TEST_CASE("programs: with -o json an error is JSON on stderr, with the same exit code") {
  ProgramRun lost("brokerctl", {"--socket", "/nowhere/broker.sock", "-o", "json", "status"});
  CHECK(lost.finish() == exit_code(Errc::FileNotFound));
  CHECK(lost.output.empty());
  const auto error = wire::Json::parse(lost.errors()).at("error");
  CHECK(error.at("code") == "FileNotFound");
  CHECK(error.at("exit_code") == exit_code(Errc::FileNotFound));

  ProgramRun mistyped("brokerctl", {"-o", "json", "revok", "1.1"});
  CHECK(mistyped.finish() == 2);
  CHECK(wire::Json::parse(mistyped.errors()).at("error").at("exit_code") == 2);
}

TEST_CASE("programs: broker and worker print what is wrong and what to do next") {
  ProgramRun broker("leasehold-broker", {"--socket", "/nowhere/at/all.sock"});
  CHECK(broker.finish() == exit_code(Errc::FileNotFound));
  CHECK(broker.errors().find("(FileNotFound); next: ") != std::string::npos);

  ProgramRun worker("leasehold-worker", {"--broker", "/nowhere/broker.sock", "--model",
                                         "/nowhere/model.gguf", "--listen", "/nowhere/w.sock"});
  CHECK(worker.finish() == exit_code(Errc::FileNotFound));
  CHECK(worker.errors().find("; next: ") != std::string::npos);
}

TEST_CASE("programs: a revoked tenant prints its text and exits with LeaseRevoked") {
  World world;
  world.worker.after_answer = [&](const std::string& method, const wire::Json&) {
    if (method != "request.submit") return;
    world.emit(0, 2);
    world.complete_revoked({1, 1});
  };

  ProgramRun run("leasehold-tenant", tenant_arguments(world));

  CHECK(run.finish(serving(world)) == exit_code(Errc::LeaseRevoked));
  CHECK(run.output == "t0 t1 \n");
  CHECK(run.errors().find("lease 1.1 (tenant scope) was revoked (operator) after 2 tokens") !=
        std::string::npos);
  CHECK(world.broker.calls("lease.release").size() == 1);
}

TEST_CASE("programs: a tenant that rebinds prints one text and never its lease token") {
  const bool json = GENERATE(true, false);
  World world;
  world.worker.after_answer = [&](const std::string& method, const wire::Json& params) {
    if (method != "request.submit") return;
    const bool first = params.at("emitted").empty();
    world.emit(first ? 0 : 2, 2);
    first ? world.complete_revoked({1, 1}) : world.complete("EndOfSequence");
  };
  auto arguments = tenant_arguments(world);
  arguments.push_back("--rebind");
  if (json) arguments.insert(arguments.end(), {"-o", "json"});

  ProgramRun run("leasehold-tenant", arguments);

  CHECK(run.finish(serving(world)) == 0);
  if (!json) CHECK(run.output == "t0 t1 t2 t3 \n");
  if (json) CHECK(run.output.find(R"("event":"rebound")") != std::string::npos);
  CHECK(run.output.find("secret") == std::string::npos);
  CHECK(run.errors().find("secret") == std::string::npos);
}

TEST_CASE(
    "programs: a tenant whose reader has ended cancels, releases the lease and says nothing") {
  World world;
  ProgramRun run("leasehold-tenant", tenant_arguments(world));
  world.worker.after_answer = [&](const std::string& method, const wire::Json&) {
    if (method == "request.cancel") world.complete("Cancelled");
    if (method != "request.submit") return;
    run.close_output();
    world.emit(0, 1);
  };

  CHECK(run.finish(serving(world)) == kExitReaderGone);
  CHECK(world.broker.calls("lease.release").size() == 1);
  CHECK(world.worker.calls("request.cancel").size() == 1);
  CHECK(run.errors().find("; next: ") == std::string::npos);
}

TEST_CASE("programs: SIGTERM cancels, releases the lease and exits with 0") {
  World world;
  bool streaming = false;
  world.worker.after_answer = [&](const std::string& method, const wire::Json&) {
    if (method == "request.submit") streaming = true;
    if (method == "request.cancel") world.complete("Cancelled");
  };
  ProgramRun run("leasehold-tenant", tenant_arguments(world));
  while (!streaming) world.io.run_one_for(std::chrono::seconds(20));
  REQUIRE(run.child.signal(SIGTERM));

  CHECK(run.finish(serving(world)) == 0);
  CHECK(world.broker.calls("lease.release").size() == 1);
  CHECK(run.errors().find("cancelled after 0 tokens") != std::string::npos);
}

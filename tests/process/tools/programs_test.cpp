// brokerctl and leasehold-tenant: exit codes, what goes to stdout, what goes to stderr.
#include <signal.h>

#include <catch2/catch.hpp>

#include "common/version.hpp"
#include "tests/process/tools/program_run.hpp"
#include "tests/unit/tools/tenant/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::tenant;

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

void nothing() {}

}  // namespace

TEST_CASE("programs: without a broker each says so, with the error's exit code, and ends") {
  const std::string path = "/nowhere/broker.sock";
  ProgramRun brokerctl("brokerctl", {"--socket", path, "status"});
  CHECK(brokerctl.finish(nothing) == exit_code(Errc::FileNotFound));
  CHECK(brokerctl.output.empty());
  CHECK(brokerctl.errors().find("start leasehold-broker") != std::string::npos);

  ProgramRun tenant("leasehold-tenant", {"--socket", path, "--tenant", "A", "--prompt", "x"});
  CHECK(tenant.finish(nothing) == exit_code(Errc::FileNotFound));
  CHECK(tenant.output.empty());
  CHECK(tenant.errors().find("start leasehold-broker") != std::string::npos);
}

TEST_CASE(
    "programs: wrong usage ends with 2, leaves stdout empty, names the program and the word") {
  for (const std::string program :
       {"brokerctl", "leasehold-tenant", "leasehold-demo", "leasehold-broker", "leasehold-worker",
        "leasehold-device-agent"}) {
    CAPTURE(program);
    ProgramRun run(program, {"--no-such-option"});
    CHECK(run.finish(nothing) == 2);
    CHECK(run.output.empty());
    CHECK(run.errors().starts_with(program + ": "));
    CHECK(run.errors().find("; next: ") != std::string::npos);
  }
}

TEST_CASE("programs: an option with nothing in it is no option left out") {
  for (const std::string option : {"--state-dir", "--event-log"}) {
    CAPTURE(option);
    ProgramRun run("leasehold-broker", {option, ""});
    CHECK(run.finish(nothing) == 2);
    CHECK(run.errors().find(option) != std::string::npos);
  }
}

TEST_CASE("programs: a name that cannot be is wrong usage, printed before anything is asked") {
  ProgramRun worker("leasehold-worker", {"--broker", "/none", "--model", "/none", "--listen",
                                         "/none", "--name", "w 9"});
  CHECK(worker.finish(nothing) == 2);
  CHECK(worker.errors().find("--name: ") != std::string::npos);
}

TEST_CASE("programs: help goes to stdout and names the program, not where it lies") {
  for (const std::string program : {"brokerctl", "leasehold-broker", "leasehold-worker"}) {
    CAPTURE(program);
    ProgramRun run(program, {"--help"});
    CHECK(run.finish(nothing) == 0);
    CHECK(run.output.find("Usage: " + program + " ") != std::string::npos);
    CHECK(run.errors().empty());
  }
}

TEST_CASE("programs: each says its version") {
  for (const char* program : {"brokerctl", "leasehold-tenant", "leasehold-demo", "leasehold-broker",
                              "leasehold-worker"}) {
    ProgramRun run(program, {"--version"});
    CHECK(run.finish(nothing) == 0);
    CHECK(run.output == std::string(program) + " " + std::string(version()) + "\n");
  }
}

TEST_CASE("programs: with -o json an error is JSON on stderr, with the same exit code") {
  ProgramRun lost("brokerctl", {"--socket", "/nowhere/broker.sock", "-o", "json", "status"});
  CHECK(lost.finish(nothing) == exit_code(Errc::FileNotFound));
  CHECK(lost.output.empty());
  const auto error = wire::Json::parse(lost.errors()).at("error");
  CHECK(error.at("code") == "FileNotFound");
  CHECK(error.at("exit_code") == exit_code(Errc::FileNotFound));

  ProgramRun mistyped("brokerctl", {"-o", "json", "revok", "1.1"});
  CHECK(mistyped.finish(nothing) == 2);
  CHECK(wire::Json::parse(mistyped.errors()).at("error").at("exit_code") == 2);
}

TEST_CASE("programs: broker and worker say what was wrong and what to do next") {
  ProgramRun broker("leasehold-broker", {"--socket", "/nowhere/at/all.sock"});
  CHECK(broker.finish(nothing) == exit_code(Errc::FileNotFound));
  CHECK(broker.errors().find("(FileNotFound); next: ") != std::string::npos);

  ProgramRun worker("leasehold-worker", {"--broker", "/nowhere/broker.sock", "--model",
                                         "/nowhere/model.gguf", "--listen", "/nowhere/w.sock"});
  CHECK(worker.finish(nothing) == exit_code(Errc::FileNotFound));
  CHECK(worker.errors().find("; next: ") != std::string::npos);
}

TEST_CASE("programs: a revoked tenant keeps its text and ends with the code of LeaseRevoked") {
  World world;
  world.worker.after_answer = [&](const std::string& method, const wire::Json&) {
    if (method != "request.submit") return;
    world.emit(0, 2);
    world.complete_revoked({1, 1});
  };

  ProgramRun run("leasehold-tenant", tenant_arguments(world));

  CHECK(run.finish(serving(world)) == exit_code(Errc::LeaseRevoked));
  CHECK(run.output == "t0 t1 \n");
  CHECK(run.errors().find("lease 1.1 (tenant scope) was taken back (operator) after 2 tokens") !=
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

TEST_CASE("programs: SIGTERM cancels, gives the lease back and ends cleanly") {
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

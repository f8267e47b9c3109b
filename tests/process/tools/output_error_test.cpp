// Programs whose output cannot be written, whose input is endless, or whose command is wrong.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "common/cli/command_line.hpp"
#include "tests/process/tools/program_run.hpp"

using namespace leasehold;

namespace {

/// The exit code of a program started by a shell; 128 plus the signal for a killed one.
int shell(const std::string& program, const std::string& rest) {
  const int status = std::system(("'" + program_path(program) + "' " + rest).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int tokenize(const std::string& rest) {
  return shell("leasehold-tokenize", "--model '" + bundled_model_path() + "' " + rest);
}

int perplexity(const std::string& rest) {
  return shell("leasehold-perplexity", "--model '" + bundled_model_path() + "' " + rest);
}

int tenant(const std::string& rest) {
  return shell("leasehold-tenant", "--socket /nowhere/b.sock --tenant A " + rest);
}

}  // namespace

TEST_CASE("output_error: output that stdout does not accept is DiskFull") {
  const int lost = exit_code(Errc::DiskFull);
  CHECK(tokenize("hi >/dev/full 2>/dev/null") == lost);
  CHECK(tokenize("hi >/dev/full 2>/dev/full") == lost);
  CHECK(tokenize("\"$(head -c 100000 /dev/zero | tr '\\0' x)\" >/dev/full 2>/dev/null") == lost);
  CHECK(shell("leasehold-bench", "gate --units 10 >/dev/full 2>/dev/null") == lost);
  CHECK(tokenize("hi >/dev/null 2>/dev/full") == kExitOk);
}

TEST_CASE("output_error: help and version count as output") {
  for (const char* program :
       {"brokerctl", "leasehold-tenant", "leasehold-demo", "leasehold-broker", "leasehold-worker",
        "leasehold-tokenize", "leasehold-perplexity", "leasehold-bench"}) {
    CAPTURE(program);
    CHECK(shell(program, "--help >/dev/full 2>/dev/null") == exit_code(Errc::DiskFull));
    CHECK(shell(program, "--help >/dev/null 2>/dev/full") == kExitOk);
  }
  CHECK(shell("leasehold-worker", "--version >/dev/full 2>&1") == exit_code(Errc::DiskFull));
}

TEST_CASE(
    "output_error: a benchmark that does not exist, or is missing, is answered with the list") {
  ProgramRun run("leasehold-bench", {"frob"});
  CHECK(run.finish() == kExitUsage);
  CHECK(run.errors().contains("there is no command 'frob'. Commands: revoke, engine, "));
  ProgramRun none("leasehold-bench", {});
  CHECK(none.finish() == kExitUsage);
  CHECK(none.errors().contains("a command is missing. Commands: revoke, "));
}

TEST_CASE("output_error: an error that stderr does not accept keeps its exit code") {
  const int not_found = exit_code(Errc::FileNotFound);
  CHECK(shell("leasehold-broker", "--socket /nowhere/b.sock 2>/dev/full") == not_found);
  CHECK(shell("leasehold-worker",
              "--broker /nowhere/b.sock --listen /nowhere/w.sock "
              "--model /nowhere.gguf 2>/dev/full") == not_found);
  CHECK(shell("leasehold-tokenize", "--model /nowhere.gguf hi 2>/dev/full") == not_found);
  CHECK(perplexity("--text /nowhere 2>/dev/full") == not_found);
  CHECK(tenant("--prompt hi 2>/dev/full") == not_found);
  CHECK(shell("leasehold-worker", "--no-such-option 2>/dev/full") == kExitUsage);
}

TEST_CASE("output_error: control characters in a path are escaped on the terminal") {
  const std::string path = "/nowhere/\x1b[2J\nmodel.gguf";
  for (const char* program : {"leasehold-worker", "leasehold-tokenize", "leasehold-perplexity"}) {
    CAPTURE(program);
    for (const char* option : {"--model", "--no-such-option"}) {
      ProgramRun run(program, {"--broker", "/nowhere/b.sock", option, path});
      CHECK(run.finish() != kExitOk);
      const std::string printed = run.errors();
      CHECK(printed.find('\x1b') == std::string::npos);
      CHECK(printed.find('\n') == printed.size() - 1);
    }
  }
}

TEST_CASE("output_error: endless and unreadable input are typed errors") {
  CHECK(perplexity("--text / 2>/dev/null") == exit_code(Errc::BadRequest));
  CHECK(perplexity("--text /dev/zero 2>/dev/null") == exit_code(Errc::BadRequest));
  CHECK(tokenize("</ 2>/dev/null") == exit_code(Errc::SystemError));
  CHECK(tokenize("</dev/zero 2>/dev/null") == exit_code(Errc::MessageTooLarge));
  CHECK(tenant("</dev/zero 2>/dev/null") == exit_code(Errc::MessageTooLarge));
  CHECK(tenant("--prompt x --grammar /dev/zero 2>/dev/null") == kExitUsage);
  CHECK(tenant("--prompt x --json-schema /dev/zero 2>/dev/null") == kExitUsage);
}

#include "tests/checks/runner/program.hpp"

#include <iostream>

#include "common/cli/print_error.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::runner {
namespace {

constexpr int kInterrupted = 130;  // as a shell reports SIGINT

}  // namespace

std::string_view verdict(bool all_passed) {
  return all_passed ? "\nAll checks passed.\n" : "\nSome checks FAILED.\n";
}

Result<int> run_in_directory(
    const std::string& name, std::string_view content, const Poller& poller,
    const std::function<Result<int>(const std::filesystem::path& directory)>& run) {
  auto directory = TRY(TemporaryDirectory::create(name));
  auto code = run(directory.path());
  const bool all_passed = code && *code != kChecksFailed;
  if (!all_passed && !poller.interrupted()) {
    directory.keep();
    std::cerr << content << ": " << directory.path().string() << '\n';
  }
  return code;
}

int run_program(std::string_view program,
                const std::function<Result<int>(const Poller& poller)>& run) {
  const auto poller = Poller::create();
  if (!poller) return print_error(program, poller.error());
  const auto code = run(*poller);
  if (poller->interrupted()) {
    std::cerr << program << ": interrupted; all its processes have ended\n";
    return kInterrupted;
  }
  if (!code) return print_error(program, code.error());
  return finish_program(program, *code);
}

}  // namespace leasehold::runner

/// The lease table after every single machine instruction of a broker.
///
/// The broker is a forked child under ptrace(2). Its stores reach this process through the shared
/// object in the order of its instructions, so a test observes the order of stores directly.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <optional>

#include "ipc/table/lease_table.hpp"
#include "ipc/table/table_reader.hpp"
#include "tests/support/leased_memory.hpp"

namespace leasehold::testing {

class SteppedBroker {
 public:
  /// The child creates a table, calls `prepare(table)`, and waits to be stepped through
  /// `act(table)`.
  template <class Prepare, class Act>
  SteppedBroker(Prepare prepare, Act act) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return;
    const UniqueFd read_end(ends[0]);
    const UniqueFd write_end(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) ::_exit(run_child(write_end, prepare, act));
    int table_fd = -1;
    if (::read(read_end.get(), &table_fd, sizeof(table_fd)) != sizeof(table_fd)) return;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    stopped_ = WIFSTOPPED(status);
    if (stopped_) attach(table_fd);
  }
  ~SteppedBroker() {
    if (!stopped_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  SteppedBroker(const SteppedBroker&) = delete;
  SteppedBroker& operator=(const SteppedBroker&) = delete;

  /// False where this machine forbids ptrace.
  bool can_step() const { return reader_.has_value(); }

  /// Calls `inspect(reader)` after each instruction until the child exits; returns the number of
  /// instructions.
  template <class Inspect>
  std::uint64_t step_through(Inspect inspect) {
    std::uint64_t steps = 0;
    while (step()) {
      ++steps;
      inspect(*reader_);
    }
    return steps;
  }

 private:
  template <class Prepare, class Act>
  static int run_child(const UniqueFd& report, Prepare prepare, Act act) {
    LeaseTable table = required(LeaseTable::create(16));
    prepare(table);
    const UniqueFd reader = required(table.reader_fd());
    const int number = ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? reader.get() : -1;
    if (::write(report.get(), &number, sizeof(number)) != sizeof(number) || number < 0) return 1;
    ::raise(SIGSTOP);
    act(table);
    return 0;
  }

  void attach(int table_fd) {
    const std::string path = fmt::format("/proc/{}/fd/{}", pid_, table_fd);
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (auto reader = TableReader::attach(std::move(fd))) reader_.emplace(*std::move(reader));
  }

  bool step() {
    if (::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) != 0) return false;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    stopped_ = WIFSTOPPED(status);
    return stopped_;
  }

  pid_t pid_ = -1;
  bool stopped_ = false;
  std::optional<TableReader> reader_;
};

}  // namespace leasehold::testing

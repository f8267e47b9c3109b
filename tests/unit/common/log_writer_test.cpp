#include "common/log_writer.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <boost/system/system_error.hpp>
#include <catch2/catch.hpp>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "common/cli/print_error.hpp"
#include "common/expects.hpp"
#include "common/log.hpp"
#include "common/machine/run_server.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/no_more_threads.hpp"

using namespace leasehold;

namespace {

constexpr auto kLongTime = std::chrono::minutes(1);

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    reader.reset(ends[0]);
    writer.reset(ends[1]);
  }
  UniqueFd reader, writer;
};

/// Until a write would wait for the reader.
void fill(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  while (::write(fd, "x", 1) > 0) {
  }
  ::fcntl(fd, F_SETFL, flags);
}

std::string announce(std::uint64_t dropped) {
  return "dropped=" + std::to_string(dropped) + "\n";
}

std::uint64_t sum_announced(const std::string& read) {
  constexpr std::string_view kBefore = "dropped=";
  std::uint64_t sum = 0;
  for (auto at = read.find(kBefore); at != read.npos; at = read.find(kBefore, at + 1))
    sum += std::stoull(read.substr(at + kBefore.size()));
  return sum;
}

std::unique_ptr<LogWriter> start(UniqueFd fd, LogWriter::Limits limits = {}) {
  return LogWriter::start(std::move(fd), announce, limits).value();
}

/// Makes stderr a pipe that no process reads, and that is full. The reader's end stays open.
void stop_reader_of_stderr() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::abort();
  ::dup2(ends[1], STDERR_FILENO);
  fill(STDERR_FILENO);
}

}  // namespace

TEST_CASE("log writer: lines are written in order, each once") {
  Pipe pipe;
  auto writer = start(std::move(pipe.writer));
  for (int i = 0; i < 100; ++i) writer->write(std::to_string(i) + "\n");
  REQUIRE(writer->flush(kLongTime));
  writer.reset();  // closes the pipe
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += std::to_string(i) + "\n";
  CHECK(testing::read_all(pipe.reader) == expected);
}

TEST_CASE("log writer: a reader that stops costs the oldest lines, and the log says how many") {
  Pipe pipe;
  fill(pipe.writer.get());
  auto writer = start(std::move(pipe.writer), {.max_lines = 3});
  writer->write("first\n");
  // The thread holds it and waits for the reader.
  REQUIRE(eventually([&] { return !writer->flush(std::chrono::milliseconds(0)); }));
  for (int i = 0; i < 1000; ++i) writer->write("line " + std::to_string(i) + "\n");
  const std::uint64_t dropped = writer->dropped_lines();
  CHECK(dropped >= 900);  // all but three, and those that the thread had taken with the first one

  std::string read;
  std::thread reader([&] { read = testing::read_all(pipe.reader); });
  CHECK(writer->flush(kLongTime));
  writer.reset();
  reader.join();
  CHECK(sum_announced(read) == dropped);
  CHECK(read.ends_with("line 997\nline 998\nline 999\n"));
}

TEST_CASE("log writer: the bytes of the queue are bounded, too") {
  Pipe pipe;
  fill(pipe.writer.get());
  const auto writer = start(std::move(pipe.writer), {.max_bytes = 100});
  writer->write(std::string(101, 'x'));
  CHECK(writer->dropped_lines() == 1);
}

TEST_CASE("log writer: lines for a reader that is gone are dropped and counted") {
  const auto end = testing::run_in_child([] {
    std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return 2;
    ::close(ends[0]);
    const auto writer = start(UniqueFd(ends[1]));
    for (int i = 0; i < 3; ++i) writer->write("x\n");
    return writer->flush(kLongTime) && writer->dropped_lines() == 3 ? 0 : 1;
  });
  CHECK(end.exit_code == 0);
}

TEST_CASE("log writer: without a thread it is a SystemError that names the limits") {
  Pipe pipe;
  const testing::NoMoreThreads full;
  const auto refused = LogWriter::start(std::move(pipe.writer), announce, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::SystemError);
  CHECK_THAT(refused.error().detail,
             Catch::Contains("pids.max") && Catch::Contains("RLIMIT_NPROC"));
}

TEST_CASE("log: 100 000 lines and the last error end a program whose stderr is not read") {
  const auto end = testing::run_in_child([] {
    stop_reader_of_stderr();
    return run_server({.name = "p", .log_level = "info", .memory_advice = ""},
                      []() -> Result<void> {
                        for (int i = 0; i < 100'000; ++i) spdlog::info("line {}", i);
                        return log_lines_dropped() > 0 ? fail(Errc::BadToken, "no")
                                                       : fail(Errc::BadRequest, "none");
                      });
  });
  CHECK(end.exit_code == exit_code(Errc::BadToken));
}

TEST_CASE("log: a program whose log reader is gone goes on") {
  const auto end = testing::run_in_child([] {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return 2;
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    return run_server({.name = "p", .log_level = "info", .memory_advice = ""},
                      []() -> Result<void> {
                        spdlog::info("line");
                        flush_log();
                        return {};
                      });
  });
  CHECK(end.exit_code == 0);
}

TEST_CASE("log: the lines before an error come out before it") {
  const auto end = testing::run_in_child([] {
    return run_server({.name = "p", .log_level = "info", .memory_advice = ""},
                      []() -> Result<void> {
                        for (int i = 0; i < 1000; ++i) spdlog::info("line {}", i);
                        return fail(Errc::BadToken, "the end");
                      });
  });
  CHECK(end.exit_code == exit_code(Errc::BadToken));
  const auto last_line = end.error_output.find("info p line 999\n");
  REQUIRE(last_line != std::string::npos);
  CHECK(last_line < end.error_output.find("p: the end"));
}

TEST_CASE("log: a broken condition and an uncaught exception abort although stderr is not read") {
  const auto abort_with = [](bool stops, auto broken) {
    return testing::run_in_child([=] {
      if (stops) stop_reader_of_stderr();
      if (!set_up_log("p", "info")) return 2;
      broken();
      return 0;
    });
  };
  const auto expects_too_much = [] { expects(false, "the slot is free"); };
  const auto throws = [] { std::thread([] { throw std::runtime_error("of a thread"); }).join(); };
  CHECK(abort_with(true, expects_too_much).killed_by == SIGABRT);
  CHECK(abort_with(true, throws).killed_by == SIGABRT);
  CHECK_THAT(abort_with(false, expects_too_much).error_output, Catch::Contains("the slot is free"));
  CHECK_THAT(abort_with(false, throws).error_output, Catch::Contains("what=\"of a thread\""));
}

TEST_CASE("run_server: exceptions are typed errors, and threads that are refused name the limit") {
  const auto run = [](auto body) {
    return testing::run_in_child([=] {
      return run_server({.name = "p", .log_level = "info", .memory_advice = "use less"},
                        [&]() -> Result<void> {
                          body();
                          return {};
                        });
    });
  };
  const auto no_memory = run([] { throw std::bad_alloc(); });
  CHECK(no_memory.exit_code == exit_code(Errc::OutOfMemory));
  CHECK_THAT(no_memory.error_output, Catch::Contains("use less"));
  const auto no_thread = run([] {
    const testing::NoMoreThreads full;
    std::thread([] {}).join();
  });
  CHECK(no_thread.exit_code == exit_code(Errc::SystemError));
  CHECK_THAT(no_thread.error_output, Catch::Contains("pids.max"));
  const auto no_pool = run([] {
    const auto again = std::make_error_code(std::errc::resource_unavailable_try_again);
    throw boost::system::system_error(again, "thread");  // as Asio's thread pools do
  });
  CHECK_THAT(no_pool.error_output, Catch::Contains("pids.max"));
  const auto other = run([] { throw std::runtime_error("odd"); });
  CHECK(other.exit_code == exit_code(Errc::SystemError));
  CHECK_THAT(other.error_output, Catch::Contains("unexpected exception: odd"));
}

TEST_CASE("log: a closed stderr becomes /dev/null, not the first file that is opened") {
  const auto end = testing::run_in_child([] {
    ::close(STDERR_FILENO);
    if (!set_up_log("p", "info")) return 2;
    const UniqueFd file(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
    return file.get() == STDERR_FILENO ? 1 : 0;
  });
  CHECK(end.exit_code == 0);
}

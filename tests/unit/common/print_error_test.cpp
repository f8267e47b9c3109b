#include "common/cli/print_error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>

#include "tests/support/child_process.hpp"

using namespace leasehold;

namespace {

/// As with a shell's 1>/dev/full, in a child of the test.
void fill_up(int fd) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ::dup2(full, fd);
}

/// As with a shell's `| true` once that has ended, for a program that ignores SIGPIPE.
void close_reader_of(int fd) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return;
  ::close(ends[0]);
  ::dup2(ends[1], fd);
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

TEST_CASE("print_error: a refused connection suggests to start the program that listens") {
  const auto line = format_error("brokerctl", {Errc::ConnectionRefused, "no listener at /x"});

  CHECK(line.starts_with("brokerctl: no listener at /x (ConnectionRefused); next: "));
  CHECK(line.find("start the program that listens there (leasehold-broker or the worker)") !=
        std::string::npos);
}

TEST_CASE("print_error: the next step for a published text is not that for a tenant's lease") {
  const auto hint = [](Errc code, FailureScope scope) {
    return format_error("brokerctl", {code, "x", scope});
  };
  CHECK(hint(Errc::QuotaBlocks, FailureScope::Shared).contains("--max-shared-blocks"));
  CHECK(hint(Errc::QuotaBlocks, FailureScope::Tenant).contains("brokerctl tenants admit"));
  for (const Errc ended : {Errc::LeaseRevoked, Errc::LeaseFenced, Errc::StaleGeneration}) {
    CHECK(hint(ended, FailureScope::Shared).contains("publish the text again"));
    CHECK(hint(ended, FailureScope::Tenant).contains("its tenant acquires a new"));
  }
  CHECK(hint(Errc::BadToken, FailureScope::Shared) == hint(Errc::BadToken, FailureScope::Tenant));
  CHECK(hint(Errc::Draining, FailureScope::Engine).contains("brokerctl undrain"));
}

TEST_CASE("print_error: the next step of a drained tenant is not an operator's command") {
  const auto line = format_error("leasehold-tenant", {Errc::Draining, "x", FailureScope::Tenant});
  CHECK(line.contains("try again later"));
  CHECK_FALSE(line.contains("brokerctl"));
}

TEST_CASE("print_error: a missing file suggests checking the path") {
  const auto line = format_error("leasehold-tokenize", {Errc::FileNotFound, "no /x.gguf"});

  CHECK(line.find("next: check the path and") != std::string::npos);
}

TEST_CASE("print_error: a refusal that says what to do gets no second advice") {
  for (const Errc code : {Errc::PermissionDenied, Errc::SocketInUse}) {
    const auto line = format_error("p", {code, "another broker uses /s; stop it"});
    CHECK(line == "p: another broker uses /s; stop it (" + std::string(name(code)) + ")");
    CHECK(format_error("p", {code, "another broker uses /s"}).contains("); next: "));
  }
}

TEST_CASE("print_error: an error of another process cannot control the terminal") {
  const auto line = format_error("brokerctl", {Errc::BadRequest, "a\x1b[2Jb\nc"});

  CHECK(line.find('\x1b') == std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
}

TEST_CASE("print_error: control characters become blanks, also those of two bytes") {
  CHECK(printable("a\x1b[2J\x7f\r\nb") == "a [2J   b");
  CHECK(printable("Zo\xc3\xab \xc2\x9b"
                  "2J \xc2\xb5s \xc2") == "Zo\xc3\xab  2J \xc2\xb5s \xc2");
  CHECK(printable("a\u202Egpj.exe\u2066\u2069\u2013\xe2\x80") == "a gpj.exe  \u2013\xe2\x80");
}

TEST_CASE("print_error: format controls become blanks, joiners and other scripts stay") {
  for (const char* hidden : {"\u061c", "\u200e", "\u200f", "\u2028", "\u202a", "\u202e", "\u2060",
                             "\u2066", "\u2069", "\ufeff"})
    CHECK(printable(std::string("a") + hidden + "b") == "a b");
  for (const char* shown : {"\u200d", "\u2010", "\u202f", "\u2070", "\u0634", "\u05d0", "é"})
    CHECK(printable(std::string("a") + shown + "b") == std::string("a") + shown + "b");
}

TEST_CASE("print_error: an error is one line on stderr and an exit code") {
  const auto end =
      testing::run_in_child([] { return print_error("nothing", {Errc::BadToken, "no"}); });
  CHECK(end.exit_code == exit_code(Errc::BadToken));
  CHECK(end.error_output == format_error("nothing", {Errc::BadToken, "no"}) + "\n");
}

TEST_CASE("print_error: a full stderr does not change the exit code") {
  const auto end = testing::run_in_child([] {
    fill_up(STDERR_FILENO);
    return print_error("nothing", {Errc::BadToken, std::string(100'000, 'x')});
  });
  CHECK(end.exit_code == exit_code(Errc::BadToken));
}

TEST_CASE("print_error: output that cannot be written changes the exit code to DiskFull") {
  const auto answer = [](bool is_lost, std::size_t size) {
    return testing::run_in_child([=] {
      if (is_lost) fill_up(STDOUT_FILENO);
      std::cout << std::string(size, ' ') << std::flush;
      return finish_program("nothing", 7);
    });
  };
  CHECK(answer(false, 1).exit_code == 7);
  for (const std::size_t size : {std::size_t{1}, std::size_t{100'000}}) {
    const auto lost = answer(true, size);
    CHECK(lost.exit_code == exit_code(Errc::DiskFull));
    CHECK(lost.error_output.starts_with("nothing: "));
  }
}

TEST_CASE("print_error: output written to stdout without the stream counts too") {
  const auto lost = testing::run_in_child([] {
    fill_up(STDOUT_FILENO);
    std::fputs("x", stdout);
    std::fflush(stdout);
    return finish_program("nothing", 0);
  });
  CHECK(lost.exit_code == exit_code(Errc::DiskFull));
}

TEST_CASE("print_error: a reader of stdout that is gone ends the program silently") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100'000}}) {
    CAPTURE(size);
    const auto end = testing::run_in_child([=] {
      close_reader_of(STDOUT_FILENO);
      std::cout << std::string(size, ' ') << std::flush;
      return finish_program("nothing", 7);
    });
    CHECK(end.exit_code == kExitReaderGone);
    CHECK(end.error_output.empty());
  }
}

TEST_CASE("print_error: a reader that is gone does not matter to a program without output") {
  std::cout.flush();  // the child would write what the reporter has not written yet
  const auto end = testing::run_in_child([] {
    close_reader_of(STDOUT_FILENO);
    return finish_program("nothing", 7);
  });
  CHECK(end.exit_code == 7);
}

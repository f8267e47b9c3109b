/// `brokerctl top` and waits on a pseudo-terminal, and without one.
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

/// brokerctl on a terminal of 12 lines and 60 columns.
class OnTerminal {
 public:
  OnTerminal(const std::string& socket, std::vector<std::string> arguments) {
    winsize size{.ws_row = 12, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    std::vector<std::string> words{program_path("brokerctl"), "--socket", socket};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    REQUIRE(pid_ > 0);
  }
  ~OnTerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(terminal_);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  /// False when the program ends, or a minute passes, first.
  bool reads(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!output.contains(text)) {
      pollfd entry{.fd = terminal_, .events = POLLIN, .revents = 0};
      if (::poll(&entry, 1, 100) > 0) {
        char bytes[4096];
        const ssize_t got = ::read(terminal_, bytes, sizeof bytes);
        if (got <= 0) return false;
        output.append(bytes, static_cast<std::size_t>(got));
      }
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }
  void press(char key) { CHECK(::write(terminal_, &key, 1) == 1); }
  int exit_status() {
    while (reads("\x01")) {
    }
    int status = 0;
    CHECK(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string output;

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
};

}  // namespace

TEST_CASE("brokerctl top: a terminal shows the tenants until q, and is restored") {
  System system({.start_worker = false});
  system.admit("ann");
  OnTerminal top(system.broker_socket(), {"top", "--interval-ms", "100"});

  CHECK(top.reads("\x1b[?1049h"));
  CHECK(top.reads("ann"));
  top.output.clear();
  CHECK(top.reads("tokens/s  0.0"));  // a second picture
  top.press('x');
  top.press('q');

  CHECK(top.exit_status() == 0);
  CHECK(top.output.ends_with("\x1b[?25h\x1b[?1049l"));
}

TEST_CASE("brokerctl top: without a terminal it prints one picture and no control characters") {
  System system({.start_worker = false});
  system.admit("ann");
  REQUIRE(system.brokerctl({"top", "--interval-ms", "100"}) == 0);
  const std::string text = file_bytes(system.directory() / "brokerctl.log");
  CHECK(text.contains("TOKENS/S"));
  CHECK(text.contains("ann"));
  CHECK_FALSE(text.contains('\x1b'));
}

TEST_CASE("brokerctl --watch: a terminal is cleared before each list, and SIGINT ends it") {
  System system({.start_worker = false});
  system.admit("ann");
  OnTerminal watch(system.broker_socket(), {"tenants", "--watch", "--interval-ms", "100"});
  CHECK(watch.reads("ann"));
  watch.output.clear();
  CHECK(watch.reads("\x1b[H\x1b[2J"));
  watch.press('\x03');  // the terminal sends SIGINT
  CHECK(watch.exit_status() == 0);
}

TEST_CASE("brokerctl workers --wait ready: waits for a broker that is away, and for its worker") {
  System system({.start_worker = false});
  REQUIRE(system.broker().signal(SIGKILL));
  REQUIRE(eventually([&] { return system.broker().status().has_value(); }));
  CHECK(system.brokerctl({"get", "worker", "w1", "--wait", "ready", "--timeout-ms", "1"}) ==
        exit_code(Errc::TimedOut));
  OnTerminal wait(system.broker_socket(), {"workers", "--wait", "ready"});
  REQUIRE(system.start_broker());
  system.start_worker("w1");
  CHECK(wait.reads("serving"));
  CHECK(wait.exit_status() == 0);
  REQUIRE(system.brokerctl({"describe", "worker", "w1"}) == 0);
  CHECK(file_bytes(system.directory() / "brokerctl.log").contains("brokerctl drain --worker w1"));
}

}  // namespace leasehold::testing

/// brokerctl: queries and controls a broker. Exit codes: tools/README.md.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "ipc/control/transport/client.hpp"
#include "tools/brokerctl/next_step.hpp"
#include "tools/brokerctl/run.hpp"
#include "tools/cli/broker_address.hpp"
#include "tools/cli/explain.hpp"
#include "tools/cli/progress_line.hpp"
#include "tools/cli/screen.hpp"

namespace {

using namespace leasehold;

constexpr std::string_view kProgram = "brokerctl";
constexpr Duration kCallTimeout = std::chrono::seconds(10);
constexpr Duration kPublishTimeout = std::chrono::minutes(10);

volatile sig_atomic_t stop_requested = 0;

/// Makes a signal interrupt a wait instead of ending the program, so that output is never cut
/// short.
void stop_on_signal() {
  struct sigaction action{};
  action.sa_handler = [](int) { stop_requested = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool wait_unless_stopped(Duration duration) {
  if (stop_requested != 0) return false;
  const timespec time{.tv_sec = duration / std::chrono::seconds(1),
                      .tv_nsec = (duration % std::chrono::seconds(1)).count()};
  nanosleep(&time, nullptr);
  return stop_requested == 0;
}

bool needs_no_broker(const brokerctl::Verb& verb) {
  return std::holds_alternative<brokerctl::PrintText>(verb) ||
         std::holds_alternative<brokerctl::MakeText>(verb) ||
         std::holds_alternative<brokerctl::AskCell>(verb);
}

/// Size of the terminal on stdout; empty if it is not one.
std::function<cli::ScreenSize()> terminal() {
  if (!cli::screen_size(STDOUT_FILENO)) return {};
  return [] { return cli::screen_size(STDOUT_FILENO).value_or(cli::ScreenSize{}); };
}

/// The screen for `top` on a terminal, where a key also ends a wait; otherwise null.
std::unique_ptr<cli::LiveScreen> live_screen(const brokerctl::Arguments& arguments) {
  const auto* top = std::get_if<brokerctl::ShowTop>(&arguments.verb);
  const bool is_live = top != nullptr && !top->once && arguments.output != brokerctl::Output::Json;
  if (!is_live || ::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) return nullptr;
  return std::make_unique<cli::LiveScreen>(STDIN_FILENO, STDOUT_FILENO);
}

/// The connection to the broker. It is made at the first call, and again after it is lost, so that
/// a wait can begin before the broker.
class Connection {
 public:
  explicit Connection(std::string path) : path_(std::move(path)) {}

  Result<wire::Json> call(std::string_view method, const wire::Json& params) {
    TRY(connect());
    const bool computes =
        method == wire::PrefixPublish::kMethod || method == wire::AdapterLoad::kMethod;
    const Duration timeout = computes ? kPublishTimeout : kCallTimeout;
    auto body = body_of(client_->call(std::string(method), {.body = params}, timeout));
    if (is_lost(body)) client_.reset();
    return body;
  }

  std::vector<Result<wire::Json>> call_all(std::string_view method,
                                           const std::vector<wire::Json>& params) {
    std::vector<Result<wire::Json>> bodies;
    if (const auto connected = connect(); !connected) {
      bodies.assign(params.size(), std::unexpected(connected.error()));
      return bodies;
    }
    std::vector<control::Payload> payloads;
    for (const wire::Json& each : params) payloads.push_back({.body = each, .fds = {}});
    for (auto& reply : client_->call_all(std::string(method), std::move(payloads), kCallTimeout))
      bodies.push_back(body_of(std::move(reply)));
    if (std::ranges::any_of(bodies, is_lost)) client_.reset();
    return bodies;
  }

 private:
  Result<void> connect() {
    if (!client_) client_ = TRY(control::Client::connect(path_));
    return {};
  }
  static Result<wire::Json> body_of(Result<control::Payload> reply) {
    if (!reply) return std::unexpected(std::move(reply).error());
    return std::move(reply->body);
  }
  static bool is_lost(const Result<wire::Json>& body) {
    return !body && body.error().code == Errc::ConnectionLost;
  }

  std::string path_;
  std::optional<control::Client> client_;
};

Result<void> run_verb(const brokerctl::Arguments& arguments, int& code) {
  using std::chrono::steady_clock;
  cli::ProgressLine line(steady_clock::now(), ::isatty(STDERR_FILENO) == 1);
  if (needs_no_broker(arguments.verb)) {
    return brokerctl::run(arguments, {.wait = wait_unless_stopped,
                                      .out = &std::cout,
                                      .progress_text =
                                          [&line](const std::string& text) {
                                            line.update(text, steady_clock::now());
                                          },
                                      .set_exit_code = [&code](int it) { code = it; }});
  }
  Connection broker(cli::broker_address(arguments.socket, cli::read_environment()));
  const SystemClock clock;
  const auto screen = live_screen(arguments);
  const auto wait = [&screen](Duration duration) {
    if (screen == nullptr) return wait_unless_stopped(duration);
    return screen->wait(duration) && stop_requested == 0;
  };
  brokerctl::Dependencies dependencies{
      .call = [&broker](std::string_view method,
                        const wire::Json& params) { return broker.call(method, params); },
      .call_all =
          [&broker](std::string_view method, const std::vector<wire::Json>& params) {
            return broker.call_all(method, params);
          },
      .wait = wait,
      .clock = &clock,
      .out = &std::cout,
      .progress = [&line](std::size_t ended,
                          std::size_t all) { line.update(ended, all, steady_clock::now()); },
      .set_exit_code = [&code](int it) { code = it; },
      .screen_size = terminal()};
  return brokerctl::run(arguments, dependencies);
}

using leasehold::print_error;

int print_error(const Error& error, const brokerctl::Arguments& arguments) {
  const std::string next = brokerctl::next_step(arguments.verb, error);
  if (arguments.output != brokerctl::Output::Json) return print_error(kProgram, error, next);
  std::cerr << cli::error_json(error, next) + '\n';
  return exit_code(error.code);
}

/// Prints the error of an interrupted wait. The broker continues the operation; the error says in
/// which state it is.
int print_interrupted(const Error& error, brokerctl::Output output) {
  if (output == brokerctl::Output::Json) {
    std::cerr << cli::interrupted_json(error) + '\n';
  } else {
    std::cerr << std::string(kProgram) + ": " + printable(error.detail) + '\n';
  }
  return cli::kExitInterrupted;
}

int print_error(const brokerctl::UsageWithOutput& usage) {
  if (usage.exit_code == kExitOk || usage.output != brokerctl::Output::Json)
    return print_error(kProgram, static_cast<const Usage&>(usage));
  std::cerr << cli::usage_json(usage.text) + '\n';
  return usage.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto arguments = brokerctl::parse_arguments(words);
  if (!arguments) return print_error(arguments.error());
  stop_on_signal();
  int code = kExitOk;
  if (const auto done = run_verb(*arguments, code); !done) {
    const bool is_interrupted = stop_requested != 0 && done.error().code == Errc::TimedOut;
    return is_interrupted ? print_interrupted(done.error(), arguments->output)
                          : print_error(done.error(), *arguments);
  }
  return finish_program_with(code,
                             [&](const Error& error) { return print_error(error, *arguments); });
}

/// leasehold-tenant: runs one prompt under a lease and streams the answer. Exit codes:
/// tools/README.md.
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <ctime>
#include <iostream>
#include <memory>

#include "common/fault_point.hpp"
#include "common/machine/process.hpp"
#include "common/machine/text_file.hpp"
#include "tools/cli/broker_address.hpp"
#include "tools/cli/json_text.hpp"
#include "tools/tenant/arguments.hpp"
#include "tools/tenant/printer.hpp"

namespace {

using namespace leasehold;

constexpr std::string_view kProgram = "leasehold-tenant";

/// Reads the prompt from stdin, without its last newline.
Result<std::string> read_prompt() {
  if (isatty(STDIN_FILENO)) std::cerr << "Type the prompt and end it with Ctrl-D.\n";
  std::string text = TRY(read_text_stdin(tenant::kMaxTextBytes));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

void print(const client::SessionEvent& event, tenant::Output output, TimePoint now) {
  static const bool to_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (output == tenant::Output::Json) {
    std::cout << cli::json_text(tenant::to_json(event, now)) << std::endl;
  } else {
    tenant::print_text(event, {std::cout, to_terminal}, std::cerr);
  }
}

int run(tenant::Arguments arguments) {
  boost::asio::io_context io;
  client::AsioTimers timers(io);
  int status = 1;
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  std::shared_ptr<client::TenantSession> session;
  session = client::TenantSession::create(
      io, timers, std::move(arguments.config), [&](const client::SessionEvent& event) {
        print(event, arguments.output, timers.now());
        // Nothing reads the rest of the text, so cancel. The observer itself must not call
        // cancel().
        if (!std::cout) boost::asio::post(io, [&session] { session->cancel(); });
        const auto* ended = std::get_if<client::Ended>(&event);
        if (ended == nullptr) return;
        status = ended->error ? exit_code(ended->error->code) : kExitOk;
        signals.cancel();  // The event loop ends only without a pending wait.
      });
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (error) return;
    session->cancel();
    signals.clear();  // A second signal kills the program.
  });
  session->start();
  request_short_time_slice();
  io.run();
  return finish_program(kProgram, status);
}

}  // namespace

int main(int argc, char** argv) {
  // Without a reader, a write then fails, and the program cancels the request and releases its
  // lease.
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> words(argv + 1, argv + argc);
  auto arguments = tenant::parse_arguments(words);
  if (!arguments) return print_error(kProgram, arguments.error());
  if (const auto armed = arm_fault_points_from_environment(); !armed) {
    return print_error(kProgram, armed.error());
  }
  arguments->config.broker_path = cli::broker_address(arguments->socket, cli::read_environment());
  auto prompt = arguments->prompt_from_stdin ? read_prompt() : arguments->prompt;
  if (!prompt) return print_error(kProgram, prompt.error());
  tenant::set_prompt(*arguments, *std::move(prompt), std::time(nullptr));
  return run(*std::move(arguments));
}

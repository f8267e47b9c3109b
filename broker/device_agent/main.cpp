/// leasehold-device-agent: owns a card's context and allocations for the broker that started it.
///
/// It is a separate process so that the broker does not load the driver and survives a crash of it.
/// The agent serves the socket that it inherits as descriptor 3. It ends with the broker, through
/// PR_SET_PDEATHSIG or when that socket closes.
#include <signal.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>

#include "broker/device_agent/agent.hpp"
#include "common/cli/command_line.hpp"
#include "common/cli/version.hpp"
#include "common/machine/process.hpp"
#include "common/machine/run_server.hpp"

namespace leasehold {
namespace {

constexpr int kBrokerSocket = 3;

/// The opened card, or the error of opening it, which every call then returns.
class Agent {
 public:
  explicit Agent(int ordinal) {
    const auto opened = open(ordinal);
    if (!opened) open_error_ = opened.error();
  }

  Result<control::Payload> answer(const std::string& method, const control::Json& params) {
    if (!allocations_) return std::unexpected(open_error_);
    return allocations_->answer(method, params);
  }

 private:
  Result<void> open(int ordinal) {
    const cuda::Driver* driver = TRY(cuda::load_driver());
    context_.emplace(TRY(cuda::Context::retain(*driver, ordinal)));
    allocations_.emplace(*context_, TRY(cuda::MemoryCleaner::create(*context_)));
    return {};
  }

  Error open_error_{Errc::NoDevice, ""};
  std::optional<cuda::Context> context_;
  std::optional<DeviceAllocations> allocations_;
};

Result<control::Socket> inherited_socket(boost::asio::io_context& io) {
  control::Socket socket(io);
  boost::system::error_code error;
  socket.assign(boost::asio::local::stream_protocol(), kBrokerSocket, error);
  if (!error) return socket;
  return fail(Errc::BadRequest,
              "descriptor 3 is not a socket; start leasehold-broker --device cuda:N instead");
}

Result<void> serve(int ordinal) {
  boost::asio::io_context io(1);
  control::Socket socket = TRY(inherited_socket(io));
  Agent agent(ordinal);
  std::shared_ptr<control::Peer> peer;
  const auto on_call = [&](const std::string& method, const control::Payload& params,
                           control::Responder respond) {
    auto answer = agent.answer(method, params.body);
    // A fault leaves the context unusable, so the agent exits, and the broker starts a new one.
    const bool broken = !answer && answer.error().code == Errc::DeviceFault;
    respond(std::move(answer));
    if (broken) peer->close();
  };
  peer = control::Peer::create(std::move(socket),
                               {.on_call = on_call,
                                .on_notification = nullptr,
                                .on_closed = [&io](const Error&) { io.stop(); }},
                               {.max_fds = 0});
  peer->start();
  io.run();
  return {};
}

}  // namespace
}  // namespace leasehold

int main(int argc, char** argv) {
  using namespace leasehold;
  int ordinal = 0;
  CLI::App app{"Leasehold device agent: allocates memory on one card for the broker that starts it",
               "leasehold-device-agent"};
  app.set_version_flag("--version", "leasehold-device-agent " + std::string(version()));
  app.add_option("--device", ordinal, "Number of the card")->check(CLI::Range(0, 255));
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  set_not_dumpable();
  return run_server({.name = "leasehold-device-agent",
                     .log_level = "info",
                     .memory_advice = "free memory; the broker starts it again"},
                    [ordinal] { return serve(ordinal); });
}

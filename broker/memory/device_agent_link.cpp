#include "broker/memory/device_agent_link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <utility>

namespace leasehold {
namespace {

/// Loading the driver for the first time takes seconds.
constexpr Duration kStartTimeout = std::chrono::seconds(30);
/// Longest time between two replies. The agent works on one call at a time while others wait, so
/// the timeout restarts with every reply. A hung driver does not recover, but a new process may
/// work.
constexpr Duration kCallTimeout = std::chrono::seconds(10);
constexpr int kMaxFailures = 5;
constexpr Duration kInitialBackoff = std::chrono::milliseconds(100);
/// An agent that served this long resets the failure count.
constexpr Duration kStableUptime = std::chrono::seconds(10);

std::string default_program() {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return self.parent_path() / "leasehold-device-agent";
}

/// Where the agent logs: the broker's stderr, if that can be opened again.
std::string log_path() {
  const UniqueFd probe(::open("/dev/stderr", O_WRONLY | O_APPEND | O_CLOEXEC));
  return probe ? "/dev/stderr" : "/dev/null";
}

struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};

Result<SocketPair> make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail_errno(Errc::SystemError, "socketpair", errno);
  }
  return SocketPair{.ours = UniqueFd(ends[0]), .theirs = UniqueFd(ends[1])};
}

Result<control::Socket> adopt(boost::asio::io_context& io, UniqueFd fd) {
  control::Socket socket(io);
  boost::system::error_code error;
  socket.assign(boost::asio::local::stream_protocol(), fd.get(), error);
  if (error) return fail(Errc::SystemError, "adopt a socket: " + error.message());
  fd.release();
  return socket;
}

}  // namespace

Result<std::unique_ptr<DeviceAgentLink>> DeviceAgentLink::start(boost::asio::io_context& io,
                                                                Config config) {
  if (config.program.empty()) config.program = default_program();
  std::unique_ptr<DeviceAgentLink> agent(new DeviceAgentLink(io, std::move(config)));
  if (::access(agent->config_.program.c_str(), X_OK) != 0) {
    return fail(
        Errc::FileNotFound,
        fmt::format("the device agent {} is missing or not executable; name it with --agent, or "
                    "use --device cpu",
                    agent->config_.program));
  }
  TRY(agent->spawn_agent());
  std::optional<Result<wire::AgentDevice>> card;
  agent->query_card([&card](Result<wire::AgentDevice> read) { card = std::move(read); });
  while (!card) io.run_one();  // ends with a reply, the agent's exit, or the start timeout
  io.restart();
  if (!*card && card->error().code == Errc::ConnectionLost) {
    return fail(Errc::NoDevice,
                fmt::format("the device agent {} ended before it served a card; see its output on "
                            "stderr, or use --device cpu",
                            agent->config_.program));
  }
  agent->card_ = TRY(*std::move(card));
  return agent;
}

DeviceAgentLink::~DeviceAgentLink() {
  ++process_;
  if (peer_) peer_->close();
}

Result<void> DeviceAgentLink::spawn_agent() {
  SocketPair ends = TRY(make_pair());
  control::Socket socket = TRY(adopt(io_, std::move(ends.ours)));
  child_.reset();
  child_.emplace(
      TRY(Child::start({.argv = {config_.program, "--device", std::to_string(config_.ordinal)},
                        .log_path = log_path(),
                        .inherited_fds = {{.name = "broker", .fd = ends.theirs.get()}}})));
  ready_ = false;
  peer_ = control::Peer::create(std::move(socket),
                                {.on_call = nullptr,
                                 .on_notification = nullptr,
                                 .on_closed = [this, mine = ++process_](const Error& why) {
                                   if (mine == process_) lost(why);
                                 }});
  peer_->start();
  return {};
}

void DeviceAgentLink::query_card(std::function<void(Result<wire::AgentDevice>)> then) {
  peer_->call(
      std::string(wire::AgentDevice::kMethod), {.body = wire::Empty{}.to_json(), .fds = {}},
      [this, then = std::move(then)](Result<control::Payload> reply) {
        const auto card = [&]() -> Result<wire::AgentDevice> {
          const control::Payload payload = TRY(std::move(reply));
          return wire::AgentDevice::from_json(payload.body);
        };
        Result<wire::AgentDevice> read = card();
        ready_ = read.has_value();
        if (ready_) ready_since_ = SystemClock().now();
        then(std::move(read));
      },
      kStartTimeout);
}

void DeviceAgentLink::call(std::string_view method, control::Json params,
                           control::Peer::ReplyHandler on_reply) {
  if (!ready_) {
    return post([on_reply = std::move(on_reply)]() mutable {
      on_reply(fail(Errc::ConnectionLost, "no device agent is running; see the broker's log"));
    });
  }
  const std::uint64_t number = ++last_call_;
  calls_->emplace(number, std::move(on_reply));
  if (calls_->size() == 1) arm_call_timer();
  peer_->call(std::string(method), {.body = std::move(params), .fds = {}},
              [this, number, calls = std::weak_ptr(calls_)](Result<control::Payload> reply) {
                if (!calls.expired()) answered(number, std::move(reply));
              });
}

void DeviceAgentLink::post(Then then) {
  boost::asio::post(io_, [calls = std::weak_ptr(calls_), then = std::move(then)]() mutable {
    if (!calls.expired()) then();
  });
}

void DeviceAgentLink::after(Duration pause, Then then) {
  const auto timer = std::make_shared<boost::asio::steady_timer>(io_, pause);
  timer->async_wait([timer, calls = std::weak_ptr(calls_),
                     then = std::move(then)](const boost::system::error_code& error) mutable {
    if (!error && !calls.expired()) then();
  });
}

/// Ignores a reply to a call that has already failed with TimedOut.
void DeviceAgentLink::answered(std::uint64_t number, Result<control::Payload> reply) {
  auto call = calls_->extract(number);
  if (!call) return;
  arm_call_timer();
  call.mapped()(std::move(reply));
}

void DeviceAgentLink::arm_call_timer() {
  if (calls_->empty()) {
    call_timer_.cancel();
    return;
  }
  call_timer_.expires_after(kCallTimeout);
  call_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) fail_pending_calls();
  });
}

void DeviceAgentLink::fail_pending_calls() {
  // A reply may have extended the timeout after this handler was queued.
  if (calls_->empty() || call_timer_.expiry() > boost::asio::steady_timer::clock_type::now())
    return;
  spdlog::error("killing the hung device agent calls={}", calls_->size());
  if (child_) (void)child_->signal(SIGKILL);
  for (auto& [number, on_reply] : std::exchange(*calls_, {})) {
    on_reply(fail(Errc::TimedOut, fmt::format("the device agent answered no call for {} s",
                                              kCallTimeout / std::chrono::seconds(1))));
  }
}

/// Does nothing for an agent that never served: the failure of its start is reported with a better
/// message.
void DeviceAgentLink::lost(const Error& why) {
  if (!std::exchange(ready_, false)) return;
  if (SystemClock().now() - ready_since_ > kStableUptime) failures_ = 0;
  if (handlers_.on_lost) handlers_.on_lost(why);
  schedule_agent_restart();
}

void DeviceAgentLink::schedule_agent_restart() {
  if (failures_ == kMaxFailures) {
    return spdlog::error(
        "the device agent failed {} times in a row; nothing is lent until the broker restarts: "
        "check "
        "nvidia-smi, then restart leasehold-broker program={}",
        failures_, config_.program);
  }
  restart_timer_.expires_after(kInitialBackoff * (1 << failures_++));
  restart_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) restart_agent();
  });
}

void DeviceAgentLink::restart_agent() {
  if (const auto begun = spawn_agent(); !begun) {
    spdlog::error("could not start the device agent detail=\"{}\"", begun.error().detail);
    return schedule_agent_restart();
  }
  query_card([this](const Result<wire::AgentDevice>& card) {
    if (card && card->uuid == card_.uuid) return handlers_.on_recovered();
    spdlog::error("the restarted device agent does not serve detail=\"{}\"",
                  card ? "it reports another card" : card.error().detail);
    ready_ = false;
    schedule_agent_restart();
  });
}

}  // namespace leasehold

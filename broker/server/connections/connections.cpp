#include "broker/server/connections/connections.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "broker/server/connections/operators.hpp"
#include "broker/server/connections/worker_links.hpp"
#include "common/machine/process.hpp"

namespace leasehold {
namespace {

using Watch = boost::asio::posix::stream_descriptor;

/// Pause before the next accept after an error; usually the process has run out of descriptors.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

bool lacks_descriptors(const boost::system::error_code& error) {
  return error == boost::system::errc::too_many_files_open ||
         error == boost::system::errc::too_many_files_open_in_system;
}

/// The broker accepts no descriptors from callers, so that they cannot use up its descriptor limit.
/// A connection that sends one is closed.
constexpr control::Limits kOperatorLimits{
    .max_fds = 0, .max_queued_bytes = Connections::kMaxUnsentBytesPerConnection};
/// Limits for tenants, and for workers until they attach (WorkerLinks then raises them). Lines are
/// parsed on the thread that stores lease words and answers workers, and each user can send at its
/// full rate. The longest call of a tenant has less than 2 KiB and 20 values, and so does the call
/// that attaches a worker.
constexpr control::Limits kCallerLimits{
    .max_line_bytes = control::kShortLineBytes,
    .line_hint = "only operators and attached workers send longer ones",
    .max_values = 1 << 10,
    .max_fds = 0,
    .max_queued_bytes = Connections::kMaxUnsentBytesPerConnection};

}  // namespace

Connections::Connections(boost::asio::io_context& io,
                         boost::asio::local::stream_protocol::acceptor acceptor, Handlers handlers,
                         const Clock& clock, const std::set<uid_t>& worker_uids)
    : io_(io),
      acceptor_(std::move(acceptor)),
      accept_timer_(io),
      handlers_(std::move(handlers)),
      clock_(&clock),
      rates_(worker_uids),
      admission_(rates_, worker_uids) {
  acceptor_.non_blocking(true);
}

void Connections::stop_accepting() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  accept_timer_.cancel();
}

void Connections::accept_next() {
  acceptor_.async_accept([this](const boost::system::error_code& error, control::Socket socket) {
    if (!acceptor_.is_open()) return;
    const bool accepted = !error || (lacks_descriptors(error) && accept_on_spare());
    if (!accepted) return accept_later();
    if (!error) add(std::move(socket));
    handlers_.on_change();
    accept_next();
  });
}

/// Accepts a waiting connection with a spare descriptor and closes it unless the peer is an
/// operator.
bool Connections::accept_on_spare() {
  if (!spares_.release_one()) return false;
  boost::system::error_code error;
  control::Socket socket(io_);
  acceptor_.accept(socket, error);
  if (!error) add(std::move(socket), true);
  spares_.refill();
  return !error;
}

void Connections::accept_later() {
  spdlog::warn("could not accept a connection retry_ms={}", kAcceptPause.count());
  accept_timer_.expires_after(kAcceptPause);
  accept_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) accept_next();
  });
}

/// Frees the connection's place at once; its `on_closed` handler runs later.
void Connections::close(ConnectionId id) {
  const auto closed = connections_.extract(id);
  admission_.closed(id);
  closed.mapped().peer->close();
}

std::size_t Connections::admit_events(ConnectionId connection, std::size_t reported) {
  const std::size_t admitted = rates_.admit_events(connection, reported, clock_->now());
  if (rates_.has_dropped()) handlers_.on_change();
  return admitted;
}

void Connections::check() {
  if (const std::uint64_t dropped = rates_.take_dropped()) {
    spdlog::warn("dropped worker events beyond the rate limit events={}", dropped);
  }
  close_silent();
  if (const auto report = take_report()) {
    spdlog::warn("connections reached a limit refused={} displaced={} silent={} bytes={}",
                 report->refused, report->displaced, report->silent, report->bytes);
  }
}

void Connections::close_silent() {
  for (const ConnectionId id : admission_.take_silent(clock_->now())) close(id);
}

control::Peer::Handlers Connections::peer_handlers(ConnectionId id) {
  return {.on_call =
              [this, id](const std::string& method, control::Payload params,
                         control::Responder respond) {
                admission_.called(id);
                handlers_.on_call(id, method, std::move(params), std::move(respond));
                bound_output();
                handlers_.on_change();
              },
          .on_notification =
              [this, id](const std::string& method, control::Payload params) {
                handlers_.on_notification(id, method, std::move(params));
              },
          .on_closed =
              [this, id](const Error& why) {
                if (why.code == Errc::QueueFull) admission_.count_excess();
                connections_.erase(id);
                admission_.closed(id);
                rates_.forget(id);
                spares_.refill();
                handlers_.on_closed(id);
              },
          .throttle =
              [this, id](std::size_t weight) {
                const uid_t uid = connections_.at(id).peer->credentials().uid;
                return rates_.admit_line(uid, weight, clock_->now());
              },
          .refuse_input =
              [this, id] { return refuse_input(connections_.at(id).peer->credentials().uid); }};
}

std::optional<Error> Connections::refuse_input(uid_t uid) {
  const ResourceShare share = shares_of(uid).input.owner_share(uid);
  if (may_take_more(share)) return std::nullopt;
  return Error{Errc::QueueFull,
               fmt::format("{} bytes of lines of user {} wait, its share of {} with {} in use; "
                           "finish lines, and send less at once",
                           share.held, uid, share.capacity, share.taken)};
}

void Connections::add(control::Socket socket, bool operators_only) {
  const ConnectionId id{next_++};
  auto peer = control::Peer::create(std::move(socket), peer_handlers(id), kCallerLimits);
  const uid_t uid = peer->credentials().uid;
  if (operators_only && !is_operator(uid)) return admission_.count_refused();
  if (is_operator(uid)) peer->set_limits(kOperatorLimits);
  const ConnectionAdmission::Admission admission = admission_.connected(id, uid, clock_->now());
  if (!admission.is_admitted) return;
  if (admission.displaced) close(*admission.displaced);
  Shares& shares = shares_of(uid);
  auto unsent = std::make_shared<control::QueueMeter>(0, shares.unsent.meter_of(uid));
  peer->set_queue_meter(unsent);
  peer->set_input_meter(shares.input.meter_of(uid));
  connections_.emplace(id, Connection{.peer = peer, .unsent = std::move(unsent)});
  peer->start();
}

std::map<ConnectionId, Connections::Connection>::iterator Connections::largest_unsent(uid_t uid) {
  return std::ranges::max_element(connections_, {}, [uid](const auto& entry) {
    const Connection& connection = entry.second;
    return connection.peer->credentials().uid == uid ? connection.unsent->queued_bytes : 0;
  });
}

/// The output of a connection that is being closed counts until it has been sent or has timed out,
/// but no other connection is closed because of it.
void Connections::bound_output() {
  for (const Shares* shares : {&tenants_, &reserved_}) {
    while (const auto uid = shares->unsent.largest_over_share()) {
      const auto largest = largest_unsent(*uid);
      if (largest == connections_.end() || largest->second.unsent->queued_bytes == 0) break;
      admission_.count_excess();
      admission_.closed(largest->first);
      const auto closed = connections_.extract(largest);
      closed.mapped().peer->close_now();
    }
  }
}

std::shared_ptr<control::Peer> Connections::find(ConnectionId connection) const {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : found->second.peer;
}

std::uint64_t Connections::start_ticks(ConnectionId connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return 0;
  auto& known = found->second.start_ticks;
  if (!known) known = start_ticks_of(found->second.peer->credentials().pid).value_or(0);
  return *known;
}

Result<void> Connections::watch_holder(ConnectionId connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) {
    return fail(Errc::ConnectionLost, "the caller has closed its connection");
  }
  if (found->second.holder_watch) return {};
  UniqueFd pidfd = TRY(open_peer_pidfd(found->second.peer->credentials()));
  admission_.holds_lease(connection);
  Watch& watch = found->second.holder_watch.emplace(io_, pidfd.release());
  watch.async_wait(Watch::wait_read, [this, connection](const boost::system::error_code& error) {
    if (!error) handlers_.on_holder_exit(connection);
  });
  return {};
}

}  // namespace leasehold

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ipc/etcd/client.hpp"
#include "ipc/http/http_await.hpp"

namespace leasehold::etcd {
namespace {

using boost::asio::awaitable;

std::unexpected<Error> cancelled(const WatchReply& reply) {
  if (reply.compacted.value > 0) {
    return fail(Errc::ConnectionLost,
                fmt::format("etcd has compacted the changes before revision {}; the keys are "
                            "listed again",
                            reply.compacted.value));
  }
  if (reply.reason.contains("permission denied")) {
    return fail(Errc::PermissionDenied,
                "etcd refuses the watch; check the role of the user (`etcdctl role get`)");
  }
  return fail(Errc::ConnectionLost,
              fmt::format("etcd ended the watch ({}); it begins again",
                          reply.reason.empty() ? "no reason given" : reply.reason));
}

/// Events before `next` were received earlier.
void drop_known(std::vector<WatchEvent>& events, Revision next) {
  std::erase_if(events, [&](const WatchEvent& event) { return event.entry.modified < next; });
}

bool is_final(Errc code) {
  return code == Errc::PermissionDenied || code == Errc::UnknownMethod;
}

}  // namespace

/// Receives until the stream fails. `next`: the revision of the first change that was not received;
/// zero: the changes are gone, so the range must be listed.
awaitable<Result<void>> Client::receive_lines(Connection& connection, WatchReceiver& receiver,
                                              Revision& next) {
  while (true) {
    const auto line = co_await connection.read_line(kMaxReplyBytes);
    if (!line) co_return std::unexpected(line.error());
    connection.expires_never();  // the first line has come; later ones come with changes
    auto reply = read_watch_reply(*line);
    if (!reply) co_return std::unexpected(reply.error());
    if (is_closed_) co_return Result<void>();
    if (reply->is_cancelled) {
      if (reply->compacted.value > 0) next = {};
      co_return cancelled(*reply);
    }
    drop_known(reply->events, next);
    if (reply->events.empty()) continue;
    next = {reply->events.back().entry.modified.value + 1};
    receiver.on_events(std::move(reply->events));
  }
}

awaitable<Result<void>> Client::follow(const KeyRange& range, WatchReceiver& receiver,
                                       Revision& next) {
  Member& member = current();
  if (options_.login && token_.empty()) {
    const Result<void> authenticated = co_await authenticate_at(member);
    if (!authenticated) {
      if (is_of_member(authenticated.error().code)) leave(member);
      co_return authenticated;
    }
  }
  const auto connection = co_await connect(member);
  if (!connection) {
    leave(member);
    co_return std::unexpected(connection.error());
  }
  Connection& stream = **connection;
  stream.expires_after(options_.call_timeout);
  GatewayRequest request{.target = "/v3/watch",
                         .body = watch_body(range, next),
                         .token = token_,
                         .requires_leader = true};
  Result<void> done = co_await stream.send(std::move(request));
  if (done) {
    const Result<int> status = co_await stream.read_head();
    if (!status) {
      done = std::unexpected(status.error());
    } else if (*status == 200) {
      done = co_await receive_lines(stream, receiver, next);
    } else {
      const auto body = co_await stream.read_body(kMaxReplyBytes);
      done = std::unexpected(body ? error_of_reply(*status, *body) : body.error());
      if (body && options_.login && is_invalid_token(*body)) {
        token_.clear();
        done = fail(Errc::ConnectionLost, "etcd's token has expired; it is renewed");
      }
    }
  }
  stream.close();
  leave(member);
  co_return done;
}

awaitable<Result<void>> Client::watch(KeyRange range, WatchReceiver& receiver) {
  boost::asio::steady_timer pause(io_);
  pauses_.push_back(&pause);
  Result<void> ended = fail(Errc::ConnectionLost, "the watch was closed");
  for (Revision next; !is_closed_;) {
    Result<void> done;
    if (next.value == 0) {
      auto listed = co_await this->range(range);
      if (listed && !is_closed_) {
        next = {listed->revision.value + 1};
        receiver.on_listing(std::move(listed->entries), listed->revision);
      } else if (!listed) {
        done = std::unexpected(listed.error());
      }
    }
    if (done && !is_closed_) done = co_await follow(range, receiver, next);
    if (done || is_closed_) continue;
    ended = done;
    receiver.on_interrupted(done.error());
    if (is_final(done.error().code)) break;
    pause.expires_after(options_.watch_pause);
    (void)co_await pause.async_wait(http::kAwait);
  }
  std::erase(pauses_, &pause);
  co_return ended;
}

}  // namespace leasehold::etcd

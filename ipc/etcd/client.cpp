#include "ipc/etcd/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/expects.hpp"

namespace leasehold::etcd {
namespace {

using boost::asio::awaitable;

constexpr std::size_t kMaxIdle = 4;
constexpr std::size_t kPageEntries = 1'000;

std::unexpected<Error> closed() {
  return fail(Errc::ConnectionLost, "the client of etcd was closed; start the program again");
}

std::size_t size_of(const KeyValue& entry) {
  return sizeof entry + entry.key.size() + entry.value.size();
}

}  // namespace

Client::Client(boost::asio::io_context& io, ClientOptions options)
    : io_(io), options_(std::move(options)) {
  expects(!options_.members.empty(), "etcd has a member");
  for (const MemberAddress& address : options_.members) {
    members_.push_back(std::make_unique<Member>());
    members_.back()->address = address;
  }
}

Client::~Client() = default;

bool Client::is_of_member(Errc code) {
  using enum Errc;
  return code == TimedOut || code == ConnectionRefused || code == ConnectionLost ||
         code == MalformedMessage || code == MessageTooLarge || code == SystemError;
}

void Client::close() {
  is_closed_ = true;
  for (const auto& connection : std::exchange(open_, {}))
    if (const auto open = connection.lock()) open->close();
  for (boost::asio::steady_timer* pause : pauses_) pause->cancel();
}

void Client::track(const Connection::Ptr& connection) {
  std::erase_if(open_, [](const auto& known) { return known.expired(); });
  open_.push_back(connection);
}

/// Calls go on at the next member. Several calls that fail together move on once.
void Client::leave(const Member& member) {
  if (&member == &current()) current_ = (current_ + 1) % members_.size();
}

// ---------------------------------------------------------------- one exchange

awaitable<Result<void>> Client::resolve(Member& member) {
  if (!member.address.unix_path.empty() || !member.endpoints.empty()) co_return Result<void>();
  if (member.is_resolving) {
    co_return fail(Errc::TimedOut, fmt::format("etcd at {}: its name is still looked up; check the "
                                               "resolver of this machine",
                                               member.address.text));
  }
  member.is_resolving = true;
  auto found = co_await member.names.find(member.address.url, options_.call_timeout);
  member.is_resolving = false;
  if (!found) {
    Error error = found.error();
    error.detail =
        fmt::format("etcd at {}: {}; correct the name", member.address.text, error.detail);
    co_return std::unexpected(std::move(error));
  }
  member.endpoints = *std::move(found);
  co_return Result<void>();
}

awaitable<Result<Connection::Ptr>> Client::connect(Member& member) {
  const Result<void> resolved = co_await resolve(member);
  if (!resolved) co_return std::unexpected(resolved.error());
  http::TlsClient* const tls = options_.tls ? &*options_.tls : nullptr;
  auto opened =
      co_await Connection::open(member.address, member.endpoints, tls, options_.call_timeout);
  if (!opened) {
    member.endpoints.clear();  // its name may have another address now
    leave(member);             // also if its certificate is refused
    co_return std::unexpected(opened.error());
  }
  if (is_closed_) co_return closed();
  track(*opened);
  co_return opened;
}

awaitable<Result<Client::Reply>> Client::exchange(Member& member, GatewayRequest request) {
  Connection::Ptr connection;
  while (!member.idle.empty() && !connection) {
    connection = std::move(member.idle.back());
    member.idle.pop_back();
    if (!connection->is_reusable()) connection = nullptr;
  }
  if (!connection) {
    auto opened = co_await connect(member);
    if (!opened) co_return std::unexpected(opened.error());
    connection = *std::move(opened);
  }
  connection->expires_after(options_.call_timeout);
  const Result<void> sent = co_await connection->send(std::move(request));
  if (!sent) co_return std::unexpected(sent.error());
  const Result<int> status = co_await connection->read_head();
  if (!status) co_return std::unexpected(status.error());
  auto body = co_await connection->read_body(kMaxReplyBytes);
  if (!body) co_return std::unexpected(body.error());
  if (connection->is_reusable() && member.idle.size() < kMaxIdle && !is_closed_)
    member.idle.push_back(std::move(connection));
  Reply reply{.status = *status, .body = *std::move(body)};
  co_return reply;
}

awaitable<Result<void>> Client::authenticate_at(Member& member) {
  token_.clear();
  GatewayRequest request{.target = "/v3/auth/authenticate",
                         .body = authenticate_body(options_.login->user, options_.login->password),
                         .token = {}};
  const auto reply = co_await exchange(member, std::move(request));
  if (!reply) co_return std::unexpected(reply.error());
  if (reply->status != 200) co_return std::unexpected(error_of_reply(reply->status, reply->body));
  auto token = read_authenticate_reply(reply->body);
  if (!token) co_return std::unexpected(token.error());
  token_ = *std::move(token);
  co_return Result<void>();
}

/// A request that was refused for its token was not executed, so it is sent again with a new one.
awaitable<Result<std::string>> Client::call_as_user(Member& member, std::string_view target,
                                                    const std::string& body) {
  for (bool is_renewed = false;; is_renewed = true) {
    if (options_.login && token_.empty()) {
      const Result<void> done = co_await authenticate_at(member);
      if (!done) co_return std::unexpected(done.error());
    }
    GatewayRequest request{.target = target, .body = body, .token = token_};
    auto reply = co_await exchange(member, std::move(request));
    if (!reply) co_return std::unexpected(reply.error());
    if (reply->status == 200) co_return std::move(reply->body);
    if (is_renewed || !options_.login || !is_invalid_token(reply->body))
      co_return std::unexpected(error_of_reply(reply->status, reply->body));
    token_.clear();
  }
}

/// Without `repeat` only a request that was not sent is sent to another member.
awaitable<Result<std::string>> Client::call(std::string_view target, std::string body,
                                            Repeat repeat) {
  if (*calls_ >= kMaxCalls) {
    co_return fail(Errc::QueueFull,
                   fmt::format("{} calls to etcd are running; try again", kMaxCalls));
  }
  const CountedCall counted(calls_);
  for (std::size_t tried = 1;; ++tried) {
    if (is_closed_) co_return closed();
    Member& member = current();
    auto body_of_reply = co_await call_as_user(member, target, body);
    if (body_of_reply) co_return body_of_reply;
    const Errc code = body_of_reply.error().code;
    if (!is_of_member(code)) co_return body_of_reply;
    leave(member);
    const bool may_repeat = repeat == Repeat::Yes || code == Errc::ConnectionRefused;
    if (!may_repeat || tried == members_.size()) co_return body_of_reply;
  }
}

// ---------------------------------------------------------------- the six functions

awaitable<Result<RangeReply>> Client::range(KeyRange range) {
  RangeReply whole;
  RangePage page{.range = range, .revision = {}, .limit = kPageEntries};
  if (range.end.empty()) page.limit = 0;
  std::size_t size_bytes = 0;
  while (true) {
    const auto body = co_await call("/v3/kv/range", range_body(page), Repeat::Yes);
    if (!body) co_return std::unexpected(body.error());
    auto reply = read_range_reply(*body, page.range);
    if (!reply) co_return std::unexpected(reply.error());
    if (page.revision.value == 0) whole.revision = page.revision = reply->revision;
    for (KeyValue& entry : reply->entries) {
      size_bytes += size_of(entry);
      whole.entries.push_back(std::move(entry));
    }
    if (!reply->has_more || reply->entries.empty()) co_return whole;
    if (size_bytes > kMaxRangeBytes) {
      co_return fail(Errc::MessageTooLarge,
                     fmt::format("the keys from '{}' have more than {} bytes in etcd; delete those "
                                 "that are not used",
                                 range.first, kMaxRangeBytes));
    }
    page.range.first = whole.entries.back().key + '\0';
  }
}

awaitable<Result<TransactionReply>> Client::commit(Transaction transaction) {
  const std::size_t most = Transaction::kMaxOperations;
  if (transaction.conditions.size() > most || transaction.success.size() > most ||
      transaction.failure.size() > most) {
    co_return fail(
        Errc::BadRequest,
        fmt::format("a transaction has at most {} conditions and operations; divide it", most));
  }
  const auto body = co_await call("/v3/kv/txn", transaction_body(transaction), Repeat::No);
  if (!body) co_return std::unexpected(body.error());
  co_return read_transaction_reply(*body, transaction);
}

awaitable<Result<void>> Client::authenticate() {
  if (!options_.login) co_return Result<void>();
  if (is_closed_) co_return closed();
  Member& member = current();
  const Result<void> done = co_await authenticate_at(member);
  if (!done && is_of_member(done.error().code)) leave(member);
  co_return done;
}

awaitable<Result<MemberStatus>> Client::status(std::size_t index) {
  expects(index < members_.size(), "the member exists");
  if (is_closed_) co_return closed();
  const std::string request = "{}";
  const auto body = co_await call_as_user(*members_[index], "/v3/maintenance/status", request);
  if (!body) co_return std::unexpected(body.error());
  co_return read_status_reply(*body);
}

}  // namespace leasehold::etcd

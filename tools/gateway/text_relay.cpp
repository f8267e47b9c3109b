#include "tools/gateway/text_relay.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <ctime>
#include <iterator>
#include <utility>

#include "common/cli/print_error.hpp"
#include "common/fault_point.hpp"
#include "common/random.hpp"
#include "tools/gateway/host_request.hpp"

namespace leasehold::gateway {
namespace {

namespace asio = boost::asio;
using asio::awaitable;

constexpr Duration kHeartbeat = std::chrono::seconds(15);
constexpr std::string_view kComment = ":\n\n";
constexpr std::size_t kMaxWaitingBytes = 64 << 10;  // then hosts are not read
constexpr std::chrono::seconds kEndTimeout{5};

ContinuationTerms terms_of(const Shared& shared, const ClientExchange& client,
                           const BodyFacts& facts) {
  ContinuationTerms terms{.model = facts.model,
                          .placement = placement_digest(client.head().api_key(), facts.prompt),
                          .form = facts.form};
  terms.limits.choices = facts.choices;
  terms.any_arithmetic = facts.any_arithmetic;
  terms.max_moves = shared.options.moves;
  terms.silence.beat = shared.options.beat;
  terms.move_timeout = shared.options.move_timeout;
  return terms;
}

}  // namespace

TextRelay::TextRelay(std::shared_ptr<Shared> shared, ClientExchange& client, TextRequest request)
    : shared_(std::move(shared)),
      client_(&client),
      request_(std::move(request)),
      continuation_(terms_of(*shared_, client, request_.facts)),
      origin_{.created_unix_s = std::time(nullptr), .request_id = mint_request_id()},
      changed_(shared_->io),
      unread_(shared_->unread, request_.owner),
      heartbeat_at_(shared_->clock.now() + kHeartbeat) {}

// ── Decisions ──

void TextRelay::pass(const TextEvent& event) {
  TextActions actions = std::exchange(actions_, {});  // an action may pass a further event
  continuation_.on(event, shared_->hosts.table(), shared_->clock.now(), actions);
  for (TextAction& action : actions)
    std::visit([this](auto& one) { perform(std::move(one)); }, action);
  actions.clear();
  actions_ = std::move(actions);
  changed_.notify();
}

void TextRelay::perform(OpenHost action) {
  if (action.moved_from) fault_point(FaultSite::GatewayMoveDecided);
  const HostTable& table = shared_->hosts.table();
  if (action.moved_from && action.cause != MoveCause::None) {
    ++shared_->metrics.moves[static_cast<std::size_t>(action.cause)];
    spdlog::info("text moves request={} from={} to={} cause={} x_request_id={}", origin_.request_id,
                 table.address(*action.moved_from), table.address(action.host), name(action.cause),
                 client_->x_request_id());
  }
  auto attempt = std::make_shared<Attempt>(Attempt{.host = action.host, .connection = nullptr});
  attempt->may_read = std::make_shared<Signal>(shared_->io);
  attempts_[action.attempt] = attempt;
  asio::co_spawn(shared_->io, serve(action.attempt, attempt, request_for(action)), asio::detached);
}

void TextRelay::perform(const CloseHost& action) {
  const auto found = attempts_.find(action.attempt);
  if (found == attempts_.end()) return;
  const bool has_successor = std::next(found) != attempts_.end();
  if (has_successor) fault_point(FaultSite::GatewaySuccessorRuns);
  Attempt& attempt = *found->second;
  attempt.is_closed = true;
  attempt.may_read->notify();
  if (attempt.connection) attempt.connection->close();
  attempts_.erase(found);
}

void TextRelay::perform(Forward action) {
  shared_->metrics.bytes += action.bytes.size();
  if (waiting_.empty()) {
    waiting_ = std::move(action.bytes);
  } else {
    waiting_ += action.bytes;
  }
  heartbeat_at_ = shared_->clock.now() + kHeartbeat;
}

void TextRelay::perform(Finish action) {
  if (const auto found = attempts_.find(action.attempt); found != attempts_.end())
    found->second->is_finished = true;
  end_ = std::move(action);
}

void TextRelay::perform(const PassAnswer& action) {
  end_ = action;
}

void TextRelay::perform(FailRequest action) {
  const std::string code(code_of(action.error));
  ++shared_->metrics.failed_texts[code];
  spdlog::info("text failed request={} code={} reason=\"{}\" moves={} x_request_id={}",
               origin_.request_id, code, printable(action.error.detail), continuation_.moves(),
               client_->x_request_id());
  end_ = std::move(action);
}

// ── Hosts ──

std::string TextRelay::request_for(const OpenHost& action) const {
  const HostTable& table = shared_->hosts.table();
  std::string fields =
      fmt::format("Leasehold-Stream: {}\r\nLeasehold-Created: {}\r\nLeasehold-Request: {}\r\n",
                  shared_->options.beat.count(), origin_.created_unix_s, origin_.request_id);
  if (action.moved_from) {
    // A host that has ended the text does not compute it, so its part of the limits is not doubled.
    const std::string from =
        action.may_run_there ? table.name_of(*action.moved_from) : std::string();
    fields += fmt::format("Leasehold-Moved-From: {}\r\n", from.empty() ? "unknown" : from);
  }
  if (std::ranges::any_of(action.adapters, [](const auto& digest) { return !digest.empty(); }))
    fields += fmt::format("Leasehold-Adapters: {}\r\n", fmt::join(action.adapters, ","));
  const std::string body = with_emitted(request_.body, action.emitted);
  return HostRequest{.client = &client_->head(),
                     .host = shared_->hosts.link(action.host).address().authority(),
                     .x_request_id = client_->x_request_id(),
                     .client_address = client_->parties().client,
                     .fields = std::move(fields),
                     .body = body}
      .text();
}

awaitable<void> TextRelay::serve(AttemptId id, std::shared_ptr<Attempt> attempt,
                                 std::string request) {
  const auto self = shared_from_this();
  co_await asio::post(shared_->io, asio::use_awaitable);  // the action that began this ends first
  HostTable& table = shared_->hosts.table();
  HostLink& link = shared_->hosts.link(attempt->host);
  if (attempt->is_closed) co_return;
  table.started(attempt->host);
  HostLink::OnConnected note = [attempt](std::shared_ptr<HostConnection> connection) {
    attempt->connection = std::move(connection);
    if (attempt->is_closed) attempt->connection->close();
  };
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(SilenceLimits{}.head_timeout);
  HostLink::Call call{
      .request = std::move(request), .timeout = timeout, .on_connected = std::move(note)};
  auto exchange = co_await link.exchange(std::move(call));
  if (attempt->is_closed) {
    if (exchange) exchange->connection->close();
  } else if (!exchange) {
    if (exchange.error().code == Errc::ConnectionRefused) table.unreachable(attempt->host);
    HostLost lost{.attempt = id, .error = exchange.error()};
    pass(lost);
  } else if (exchange->answer.status != 200 || !is_event_stream(exchange->answer.head)) {
    co_await note_refusal(id, attempt->host, *std::move(exchange));
  } else {
    if (stream_fields_.empty()) stream_fields_ = passed_on(exchange->answer.head);
    const auto identity = exchange->answer.head.only("Leasehold-Identity");
    note_key(*shared_, *client_, kOk);
    HostAccepted accepted{.attempt = id, .identity = std::string(identity.value_or(""))};
    pass(accepted);
    if (!attempt->is_closed) log_other_arithmetic(*attempt, accepted.identity);
    co_await read_stream(id, attempt);
  }
  table.ended(attempt->host);
}

/// The client has the identity of the first host in the head of its answer.
void TextRelay::log_other_arithmetic(const Attempt& attempt, const std::string& identity) const {
  const auto is_identity = [](const auto& field) {
    return http::equals_ignoring_case(field.first, "Leasehold-Identity");
  };
  const auto first = std::ranges::find_if(stream_fields_, is_identity);
  if (first == stream_fields_.end() || first->second == identity) return;
  spdlog::info("text continues with another arithmetic request={} host={} identity=\"{}\"",
               origin_.request_id, shared_->hosts.table().address(attempt.host),
               printable(identity));
}

/// Reads the whole refusal, so that it can be passed on.
awaitable<void> TextRelay::note_refusal(AttemptId id, HostId host, HostExchange exchange) {
  ClientForm form = ClientForm::of(*client_);
  auto refusal = co_await read_refusal(*shared_, host, std::move(exchange), std::move(form));
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) co_return;
  if (!refusal) {
    HostLost lost{.attempt = id, .error = refusal.error()};
    pass(lost);
    co_return;
  }
  found->second->connection = nullptr;  // another request may use it now, so it is not closed
  const bool lacks_key = refusal->error && refusal->error->code == Errc::BadToken;
  if (lacks_key && !stream_fields_.empty()) note_missing_key(*shared_, *client_, host);
  HostRefused refused{.attempt = id, .status = refusal->answer.status, .error = refusal->error};
  refusal_ = *std::move(refusal);
  pass(refused);
}

awaitable<void> TextRelay::read_stream(AttemptId id, std::shared_ptr<Attempt> attempt) {
  const std::shared_ptr<HostConnection> connection = attempt->connection;
  while (!attempt->is_closed && !attempt->is_finished) {
    if (waiting_.size() > kMaxWaitingBytes) {
      co_await attempt->may_read->wait();
      continue;
    }
    auto piece = co_await connection->read_body(std::nullopt);
    if (attempt->is_closed) co_return;
    if (piece && !piece->empty()) {
      HostBytes bytes{.attempt = id, .bytes = *piece};
      pass(bytes);
      continue;
    }
    Error error = piece ? Error{Errc::ConnectionLost,
                                fmt::format("host {} ended its stream early",
                                            shared_->hosts.table().address(attempt->host))}
                        : piece.error();
    connection->close();
    HostLost lost{.attempt = id, .error = std::move(error)};
    pass(lost);
    co_return;
  }
  if (attempt->is_finished) co_await finish_exchange(attempt);
}

/// Reads what frames the end of a stream, so that the connection can serve again.
awaitable<void> TextRelay::finish_exchange(std::shared_ptr<Attempt> attempt) {
  const auto rest = co_await attempt->connection->read_body(kEndTimeout);
  if (rest && rest->empty()) co_return shared_->hosts.link(attempt->host).keep(attempt->connection);
  attempt->connection->close();
}

void TextRelay::close_attempts() {
  for (const auto& [id, attempt] : attempts_) {
    if (attempt->is_finished) continue;
    attempt->is_closed = true;
    attempt->may_read->notify();
    if (attempt->connection) attempt->connection->close();
  }
  attempts_.clear();
}

// ── The client ──

/// The client is gone, or the gateway waits no longer.
void TextRelay::leave() {
  if (client_->stream().is_ended()) return pass(ClientLeft{});
  pass(GatewayStopped{gateway_stopped()});
}

awaitable<void> TextRelay::run() {
  const auto self = shared_from_this();
  ++shared_->metrics.running;
  client_->stream().on_end([this] { leave(); });
  pass(RequestArrived{});
  while (!client_->stream().is_ended()) {
    if (!waiting_.empty()) {
      if (!co_await write_waiting()) break;
    } else if (end_) {
      co_await send_end();
      break;
    } else {
      co_await await_change();
    }
  }
  client_->stream().on_end(nullptr);
  close_attempts();
  --shared_->metrics.running;
  client_ = nullptr;
}

awaitable<bool> TextRelay::begin_events() {
  if (client_->has_begun()) co_return true;
  fault_point(FaultSite::GatewayAnswerReady);
  Fields fields = stream_fields_;
  if (fields.empty())
    fields = {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}};
  co_return co_await client_->begin(200, fields);
}

awaitable<bool> TextRelay::write_waiting() {
  if (!client_->has_begun() && !co_await begin_events()) co_return false;
  std::string bytes = std::exchange(waiting_, {});
  if (!unread_.take(bytes.size())) {
    spdlog::info("connection closed: unread answers owner={} x_request_id={}", request_.owner.value,
                 client_->x_request_id());
    client_->stream().close();
    co_return false;
  }
  const TimePoint begun = shared_->clock.now();
  const bool is_sent = co_await client_->write(std::move(bytes));
  (void)unread_.take(0);
  const TimePoint now = shared_->clock.now();
  // While the client read nothing, hosts were not read either: their beats may be waiting.
  if (now - begun > shared_->options.beat) no_timer_before_ = now + shared_->options.beat;
  for (const auto& [id, attempt] : attempts_) attempt->may_read->notify();
  co_return is_sent;
}

awaitable<void> TextRelay::await_change() {
  const TimePoint now = shared_->clock.now();
  const auto deadline = continuation_.next_deadline();
  const bool has_stream = request_.facts.form == AnswerForm::Events;
  TimePoint next = has_stream ? heartbeat_at_ : now + kHeartbeat;
  if (deadline) next = std::min(next, std::max(*deadline, no_timer_before_));
  if (next > now) {
    co_await changed_.wait_until(Signal::Clock::now() + (next - now));
    co_return;
  }
  if (deadline && *deadline <= now) {
    pass(TimerFired{});
    co_return;
  }
  heartbeat_at_ = now + kHeartbeat;
  waiting_ += kComment;
}

awaitable<void> TextRelay::send_end() {
  if (std::holds_alternative<Finish>(*end_)) return send_finish(std::get<Finish>(std::move(*end_)));
  if (std::holds_alternative<PassAnswer>(*end_) && refusal_) return send_refusal();
  FailRequest failed{.error = {Errc::ConnectionLost, "the host's answer is lost"}, .document = {}};
  if (auto* told = std::get_if<FailRequest>(&*end_); told != nullptr) failed = std::move(*told);
  return send_failure(std::move(failed));
}

awaitable<void> TextRelay::send_finish(Finish finish) {
  if (request_.facts.form == AnswerForm::Events) {
    if (co_await begin_events()) co_await client_->end();
    co_return;
  }
  Fields fields = stream_fields_;
  std::erase_if(fields, [](const auto& field) {
    return http::equals_ignoring_case(field.first, "Content-Type") ||
           http::equals_ignoring_case(field.first, "Cache-Control");
  });
  fields.emplace_back("Content-Type", "application/json");
  shared_->metrics.bytes += finish.document.size();
  fault_point(FaultSite::GatewayAnswerReady);
  co_await client_->send_whole(200, fields, std::move(finish.document));
}

awaitable<void> TextRelay::send_refusal() {
  co_await pass_whole(*shared_, *client_, std::move(refusal_->answer));
}

std::string_view TextRelay::code_of(const Error& error) const {
  const bool is_new = std::ranges::all_of(continuation_.tokens(), &std::vector<TokenId>::empty);
  return error.code == Errc::UnknownWorker && is_new ? kModelNotFound : leasehold::name(error.code);
}

http::Answer TextRelay::answer_of(const FailRequest& failed) const {
  const Error& error = failed.error;
  if (code_of(error) == kModelNotFound) return no_host_answer(*client_, error);
  http::Answer answer = error_answer(client_->api(), error, client_->x_request_id());
  if (!failed.document.empty()) answer.body = failed.document;  // in the API's form already
  return answer;
}

awaitable<void> TextRelay::send_failure(FailRequest failed) {
  const ErrorOutcome outcome = outcome_of(failed.error.code, TextStage::Running);
  const bool has_begun = !stream_fields_.empty();
  const bool is_stream = request_.facts.form == AnswerForm::Events;
  if (has_begun && outcome == ErrorOutcome::Move)
    failed.error =
        with_retry_advice(std::move(failed.error), is_stream && request_.facts.resumable);
  if (!client_->has_begun()) {
    co_await client_->send(answer_of(failed));
    co_return;
  }
  std::string events;
  if (!failed.is_announced) events = error_events(client_->api(), failed.error);
  if (!events.empty()) co_await client_->write(std::move(events));
  co_await client_->end();
}

}  // namespace leasehold::gateway

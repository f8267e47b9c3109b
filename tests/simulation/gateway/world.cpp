#include "tests/simulation/gateway/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace leasehold::gateway::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kReportEvery = milliseconds(500);
constexpr Duration kSilentAfter = milliseconds(2000);
constexpr Duration kLastFault = seconds(12);
/// Long after the last fault: eight moves, each with its timeouts, and the text.
constexpr Duration kLimit = seconds(400);

}  // namespace

World::World(std::uint64_t seed, Coverage& coverage)
    : random_(seed),
      coverage_(coverage),
      is_gentle_(one_in(2)),
      is_cell_(one_in(3)),
      text_(make_text()),
      terms_(make_terms()),
      judge_(text_, terms_, is_gentle_),
      continuation_(terms_) {
  make_hosts();
}

Text World::make_text() {
  const AnswerForm form = one_in(4) ? AnswerForm::Document : AnswerForm::Events;
  std::vector<std::uint32_t> lengths(one_in(2) ? 1 : 1 + random_.below(3));
  for (std::uint32_t& length : lengths) length = static_cast<std::uint32_t>(random_.below(25));
  return Text(random_(), form, std::move(lengths));
}

ContinuationTerms World::make_terms() {
  ContinuationTerms terms{.model = "m", .placement = random_()};
  terms.form = text_.form();
  terms.limits = {.choices = text_.choices(),
                  .max_line_bytes = 4096,
                  .max_group_bytes = 4096,
                  .max_ending_bytes = 8192,
                  .max_document_bytes = 4096};
  terms.any_arithmetic = one_in(8);
  terms.max_moves = one_in(8) ? 2 : 8;
  terms.silence.head_timeout = seconds(3);
  terms.silence.progress_timeout = seconds(20);
  terms.move_timeout = seconds(15);
  return terms;
}

/// Host 0 of a gentle schedule never fails. Other honest hosts compute as it does, or report that
/// they do not.
void World::make_hosts() {
  hosts_.resize(2 + random_.below(4));
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    addresses.push_back(fmt::format("10.0.0.{}:8000", i));
    if (i == 0) continue;
    if (one_in(5)) hosts_[i].identity = 1 + random_.below(2);
    hosts_[i].reported_identity = hosts_[i].identity;
    if (!one_in(5)) continue;
    hosts_[i].honesty = static_cast<Honesty>(1 + random_.below(8));
    if (hosts_[i].honesty == Honesty::HidesIdentity) {
      hosts_[i].identity = 2;
      hosts_[i].reported_identity = 0;
    }
  }
  if (is_cell_) {
    table_ = HostTable::of_cell(kSilentAfter);
    for (std::size_t i = 0; i < hosts_.size(); ++i) incarnations_.push_back({++revision_});
    use_members();
  } else {
    table_ = *HostTable::create(std::move(addresses), kSilentAfter);
  }
}

void World::plan_faults() {
  const std::uint64_t count = random_.below(is_gentle_ ? 6 : 8);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t first = is_gentle_ ? 1 : 0;
    const HostId host{first + random_.below(hosts_.size() - first)};
    const Duration heals = between(100, 6000);
    const auto fault = random_.below(8);
    at(between(0, 3000), [this, host, fault, heals] {
      if (fault == 7) {
        set_listed(host, false);
        at(is_cell_ && one_in(2) ? Duration::zero() : heals,
           [this, host] { set_listed(host, true); });
      } else if (fault == 6) {
        stopped_until_ = std::max(stopped_until_, now_ + heals);  // the gateway itself
        judge_.gateway_stops(stopped_until_);
      } else if (fault < 3) {
        set_power(host, static_cast<Power>(1 + fault));
        at(heals, [this, host] { set_power(host, Power::Up); });
      } else if (fault == 3) {
        drain(host, one_in(2));
        at(heals, [this, host] { hosts_[host.value].is_draining = false; });
      } else if (fault == 4) {
        hosts_[host.value].is_refusing = true;
        at(heals, [this, host] { hosts_[host.value].is_refusing = false; });
      } else {
        cut_connections(host);
      }
    });
  }
  at(kLastFault, [this] { heal_all(); });
}

void World::run() {
  for (std::size_t i = 0; i < hosts_.size(); ++i) report(HostId{i});
  plan_faults();
  if (one_in(20)) {
    at(between(0, 4000), [this] {
      if (continuation_.has_ended()) return;
      judge_.client_left();
      on(ClientLeft{});
    });
  }
  on(RequestArrived{});
  const TimePoint limit = now_ + kLimit;
  while (!queue_.empty() && !continuation_.has_ended() && now_ < limit) {
    auto next = queue_.extract(queue_.begin());
    now_ = next.key().first;
    next.mapped()();
  }
  judge_.check_end(continuation_);
  ++(judge_.has_finished() ? coverage_.finished : coverage_.failed);
}

void World::report(HostId id) {
  const Host& host = hosts_[id.value];
  if (host.power == Power::Up) {
    table_->reported(id,
                     {.name = "h",
                      .models = {{"m", std::string(kIdentities[host.reported_identity])}},
                      .ready = !host.is_draining,
                      .code = host.is_draining ? "Draining" : "",
                      .running = static_cast<std::uint32_t>(random_.below(4)),
                      .waiting = 0},
                     now_);
  }
  at(kReportEvery, [this, id] { report(id); });
}

/// While the gateway is stopped, events wait for it in their order.
void World::on_event(std::function<void()> event) {
  inbox_.push_back(std::move(event));
  read_inbox();
}

void World::read_inbox() {
  if (now_ < stopped_until_) return at(stopped_until_ - now_, [this] { read_inbox(); });
  while (!inbox_.empty()) {
    const std::function<void()> event = std::move(inbox_.front());
    inbox_.pop_front();
    event();
  }
}

void World::on(const TextEvent& event) {
  TextActions actions;
  const bool is_of_gone = is_of_gone_host(event);
  continuation_.on(event, *table_, now_, actions);
  for (const TextAction& action : actions) {
    const auto* open = std::get_if<OpenHost>(&action);
    if (open == nullptr) continue;
    if (!table_->is_listed(open->host))
      report_violation("a host that left the list gets no request");
    judge_.opened(*open, hosts_[open->host.value].identity, now_);
  }
  trace_step(event, actions);
  if (is_of_gone && std::ranges::any_of(actions, [](const TextAction& action) {
        return std::holds_alternative<Forward>(action) || std::holds_alternative<Finish>(action);
      }))
    report_violation("nothing of a host that has left its cell is forwarded");
  judge_.check(actions, continuation_, *table_, now_);
  for (const TextAction& action : actions) {
    if (const auto* open = std::get_if<OpenHost>(&action)) do_action(*open);
  }
  arm_timer();
}

/// Timers that have become needless fire all the same.
void World::arm_timer() {
  const auto deadline = continuation_.next_deadline();
  if (!deadline) return;
  const Duration wait = std::max(*deadline - now_, Duration::zero());
  const TimePoint fires = std::max(now_ + wait, stopped_until_);
  at(fires - now_, [this] { fire_timer(); });
}

void World::fire_timer() {
  if (now_ < stopped_until_) return at(stopped_until_ - now_, [this] { fire_timer(); });
  if (!continuation_.has_ended() && continuation_.next_deadline() <= now_) on(TimerFired{});
}

void World::do_action(const OpenHost& open) {
  trace(fmt::format("open {} on host {} because {}", open.attempt.value, open.host.value,
                    name(open.cause)));
  ++coverage_.opened[open.cause];
  const bool has_left = open.moved_from && !table_->is_listed(*open.moved_from);
  coverage_.left_list += has_left && open.cause == MoveCause::Draining;
  coverage_.asked_again += open.moved_from && open.cause == MoveCause::None;
  connections_.emplace(open.attempt, Connection{.host = open.host,
                                                .incarnation = table_->incarnation(open.host),
                                                .arrives = now_});
  at(between(1, 30),
     [this, attempt = open.attempt, emitted = open.emitted] { answer(attempt, emitted); });
}

/// The host answers with a head, or refuses, or says nothing.
void World::answer(AttemptId attempt, const EmittedTokens& emitted) {
  Connection& connection = connections_.at(attempt);
  const Host& host = hosts_[connection.host.value];
  if (host.power == Power::Dead) {
    table_->unreachable(connection.host);
    return lose(attempt, "refused");
  }
  if (host.power == Power::Unlinked || connection.is_cut) return;
  if (host.power == Power::Frozen)
    return at(milliseconds(50), [=, this] { answer(attempt, emitted); });
  if (host.is_refusing || host.is_draining) {
    const Errc code = host.is_draining ? Errc::Draining : Errc::QueueFull;
    return on_event([this, attempt, code] {
      judge_.ended_by_host(attempt);
      on(HostRefused{attempt, 503, Error{code, "refused", FailureScope::Tenant, 300}});
    });
  }
  const Duration queue = one_in(3) ? between(0, 4000) : between(0, 50);
  const Duration prefill = one_in(3) ? between(0, 3000) : between(1, 50);
  connection.stream.emplace(text_, host, emitted, now_, now_ + queue + prefill, between(2, 150));
  judge_.delivered(attempt, now_);
  on_event([this, attempt, identity = host.identity] {
    judge_.accepted(attempt, now_);
    on(HostAccepted{attempt, std::string(kIdentities[identity])});
  });
  if (const auto next = connection.stream->next_time())
    at(*next - now_, [this, attempt] { produce(attempt); });
}

void World::produce(AttemptId attempt) {
  Connection& connection = connections_.at(attempt);
  if (connection.is_cut) return;
  const Host& host = hosts_[connection.host.value];
  if (host.power == Power::Frozen) {
    connection.is_paused = true;
    return;
  }
  const Piece piece = connection.stream->make(now_, random_);
  if (host.power == Power::Unlinked) {
    connection.is_cut = true;  // what is lost is not sent again
    return;
  }
  deliver(attempt, piece);
  if (const auto next = connection.stream->next_time())
    at(std::max(*next - now_, Duration::zero()), [this, attempt] { produce(attempt); });
}

/// Bytes arrive in order, in one part or in two.
void World::deliver(AttemptId attempt, const Piece& piece) {
  Connection& connection = connections_.at(attempt);
  const std::size_t cut = one_in(3) ? random_.below(piece.bytes.size()) : 0;
  const auto send = [&](std::string bytes, std::optional<PieceKind> completes) {
    if (bytes.empty()) return;
    connection.arrives = std::max(connection.arrives, now_ + between(0, 40));
    at(connection.arrives - now_,
       [this, attempt, bytes = std::move(bytes), completes] { arrive(attempt, bytes, completes); });
  };
  const bool is_lie = piece.kind == PieceKind::Lie;  // its first line may show it
  send(piece.bytes.substr(0, cut), is_lie ? std::optional(piece.kind) : std::nullopt);
  send(piece.bytes.substr(cut), piece.kind);
}

/// A connection that is lost keeps its place in the order, but bytes on the way are lost with it.
void World::arrive(AttemptId attempt, std::string bytes, std::optional<PieceKind> completes) {
  Connection& connection = connections_.at(attempt);
  if (connection.is_lost) return;
  judge_.delivered(attempt, now_);
  if (completes == PieceKind::Group) judge_.delivered_group(attempt, now_);
  if (completes == PieceKind::Lie || completes == PieceKind::Error) judge_.delivered_fault(attempt);
  on_event([this, attempt, bytes = std::move(bytes)] { on(HostBytes{attempt, bytes}); });
}

void World::lose(AttemptId attempt, std::string_view why) {
  Connection& connection = connections_.at(attempt);
  connection.is_cut = connection.is_lost = true;
  for (std::uint64_t i = one_in(4) ? 2 : 1; i > 0; --i) {
    on_event([this, attempt, why = std::string(why)] {
      judge_.ended_by_host(attempt);
      on(HostLost{attempt, Error{Errc::ConnectionLost, why}});
    });
  }
}

void World::set_power(HostId host, Power power) {
  trace(fmt::format("host {} power {}", host.value, static_cast<int>(power)));
  hosts_[host.value].power = power;
  if (power == Power::Dead) return cut_connections(host);
  if (power != Power::Up) return;
  for (auto& [attempt, connection] : connections_) {
    if (connection.host != host || !std::exchange(connection.is_paused, false)) continue;
    connection.stream->resume(now_);
    produce(attempt);
  }
}

/// Each connection ends after the bytes that had arrived, within a block or not.
void World::cut_connections(HostId host) {
  trace(fmt::format("host {} connections cut", host.value));
  for (auto& [attempt, connection] : connections_) {
    if (connection.host != host || std::exchange(connection.is_cut, true)) continue;
    at(between(0, 60), [this, attempt] { lose(attempt, "reset"); });
  }
}

/// A host that drains ends its texts, after a while or not at all.
void World::drain(HostId host, bool ends_texts) {
  trace(fmt::format("host {} drains", host.value));
  hosts_[host.value].is_draining = true;
  if (!ends_texts) return;
  for (auto& [attempt, connection] : connections_) {
    if (connection.host != host || connection.is_cut) continue;
    at(between(200, 3000), [this, attempt] {
      Connection& one = connections_.at(attempt);
      if (one.stream && !std::exchange(one.is_cut, true))
        deliver(attempt, {PieceKind::Error, "data: {\"error\":1}\n\n: x Draining 300\n\n"});
    });
  }
}

void World::heal_all() {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].is_draining = hosts_[i].is_refusing = false;
    set_power(HostId{i}, Power::Up);
    set_listed(HostId{i}, true);
  }
}

void World::at(Duration after, std::function<void()> action) {
  queue_.emplace(std::pair(now_ + after, ++events_), std::move(action));
}

Duration World::between(std::int64_t least_ms, std::int64_t most_ms) {
  const auto span = static_cast<std::uint64_t>(most_ms - least_ms) * 1000 + 1;
  return milliseconds(least_ms) + std::chrono::microseconds(random_.below(span));
}

void World::trace_step(const TextEvent& event, const TextActions& actions) const {
  if (!running_schedule.is_traced) return;
  constexpr const char* kEvents[] = {"arrived", "accepted", "refused", "bytes",
                                     "lost",    "timer",    "left"};
  constexpr const char* kActions[] = {"open", "close", "forward", "finish", "pass", "fail"};
  std::string line = kEvents[event.index()];
  if (const auto* accepted = std::get_if<HostAccepted>(&event))
    line += fmt::format(" {} {}", accepted->attempt.value, accepted->identity);
  if (const auto* bytes = std::get_if<HostBytes>(&event))
    line += fmt::format(" {} \"{}\"", bytes->attempt.value, bytes->bytes);
  for (const TextAction& action : actions) line += fmt::format(" -> {}", kActions[action.index()]);
  trace(line);
}

void World::trace(std::string_view line) const {
  if (!running_schedule.is_traced) return;
  std::printf("%10.3f ms  %.*s\n", static_cast<double>(now_.boottime_ns - 1'000'000'000) / 1e6,
              static_cast<int>(line.size()), line.data());
}

}  // namespace leasehold::gateway::simulation

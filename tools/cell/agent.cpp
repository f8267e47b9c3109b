#include "tools/cell/agent.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "common/fault_point.hpp"
#include "common/machine/service_manager.hpp"
#include "common/random.hpp"
#include "ipc/http/http_await.hpp"
#include "tools/cell/rethrow.hpp"

namespace leasehold::cell {
namespace {

using boost::asio::awaitable;
using std::chrono::milliseconds;

/// A beat that failed is tried again much sooner than the TTL needs.
constexpr Duration kMinRetry = milliseconds(200);
constexpr Duration kMaxRetry = milliseconds(1'000);
constexpr Duration kBeatWithoutTtl = std::chrono::seconds(10);
/// The broker is asked this long before each beat what the host is.
constexpr Duration kAskBefore = milliseconds(100);
/// A host whose broker is silent for this long announces nothing that it serves.
constexpr Duration kBrokerSilent = std::chrono::seconds(3);

std::string time_to(TimePoint ceiling, TimePoint now) {
  if (ceiling == kNoCeiling) return "never";
  return std::to_string(std::chrono::duration_cast<milliseconds>(ceiling - now).count());
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::create(boost::asio::io_context& io, const Clock& clock,
                                             Options options) {
  auto file = TRY(MembershipFile::open(options.state_directory));
  return std::unique_ptr<Agent>(new Agent(io, clock, std::move(options), std::move(file)));
}

Agent::Agent(boost::asio::io_context& io, const Clock& clock, Options options, MembershipFile file)
    : clock_(clock),
      options_(std::move(options)),
      keys_(options_.address.cell),
      file_(std::move(file)),
      etcd_(io, options_.address.etcd),
      tenants_etcd_(io, options_.address.etcd),
      broker_(io, clock, tenants_etcd_, options_, [this] { beat_soon(); }),
      timer_(io),
      membership_(keys_, options_.host) {}

Result<void> Agent::start() {
  TRY(broker_.start());
  boost::asio::co_spawn(timer_.get_executor(), run(), kRethrow);
  return {};
}

awaitable<void> Agent::run() {
  resume();
  tell_broker();
  co_await read_config();
  while (true) {
    co_await beat();
    const Duration time = time_to_next_beat();
    co_await pause(time - kAskBefore);
    broker_.state().ask();
    co_await pause(kAskBefore);
    report_ceiling();
  }
}

void Agent::beat_soon() {
  has_news_ = true;
  timer_.cancel();
}

awaitable<void> Agent::pause(Duration time) {
  timer_.expires_after(time);
  (void)co_await timer_.async_wait(http::kAwait);
}

/// Without a file that can be used, the name is free after the TTL.
void Agent::resume() {
  const auto saved = file_.read();
  if (!saved) {
    spdlog::warn("membership not resumed code={} reason=\"{}\"", name(saved.error().code),
                 saved.error().detail);
  } else if (*saved) {
    membership_.resume(**saved);
    is_draining_ = (*saved)->is_draining;
    broker_.state().set_draining(is_draining_);
    spdlog::info("membership resumed cell={} host={} incarnation={}", options_.address.cell.value,
                 options_.host.value, (*saved)->incarnation.value);
    report_member();
  }
}

/// A cell without a config has the default terms.
awaitable<void> Agent::read_config() {
  while (true) {
    const auto read = co_await etcd_.range(etcd::KeyRange::one(keys_.config()));
    Result<CellConfig> config;
    if (!read) {
      config = std::unexpected(read.error());
    } else if (!read->entries.empty()) {
      config = cell::read_config(keys_.config(), read->entries.front().value);
    }
    if (config) {
      config_ = *config;
      broker_.set_moves(config_.moves);
      spdlog::info("cell found cell={} ttl_ms={} slack_ms={} moves={}", options_.address.cell.value,
                   config_.ttl_ms, config_.slack_ms, name(config_.moves));
      lost_.reset();
      co_return;
    }
    report_lost(config.error());
    co_await pause(kMaxRetry);
  }
}

Duration Agent::time_to_next_beat() const {
  const Duration regular = config_.ttl_ms == 0 ? kBeatWithoutTtl : config_.ttl() / 3;
  if (has_news_) return kAskBefore;
  const bool is_late = lost_.has_value() || !membership_.is_member();
  if (is_late) return until_ceiling(std::clamp(regular / 4, kMinRetry, kMaxRetry));
  if (config_.ttl_ms == 0) return regular;
  return until_ceiling(membership_.time_to_beat(config_.ttl(), clock_.now()));
}

/// At most until the ceiling passes, which is logged then.
Duration Agent::until_ceiling(Duration time) const {
  const Duration left = membership_.ceiling() - clock_.now();
  return left > Duration::zero() ? std::min(time, left) : time;
}

/// A host whose broker takes no ceiling runs nothing after the TTL. Without beats others expire it,
/// so that its parts are free and changes do not wait for it, and it does not join again before
/// the broker answers. The broker is still asked. Without a TTL only an operator expires a host.
bool Agent::has_lost_broker() {
  const bool is_lost = config_.ttl_ms > 0 && broker_.is_lost_for(config_.ttl());
  if (is_lost && membership_.is_member()) tell_broker();
  return is_lost;
}

HostRecord Agent::next_record() {
  const Duration ttl = membership_.next_ttl(config_.ttl(), clock_.now());
  HostRecord record{.beat = membership_.next_beat({random_bits()}),
                    .ttl_ms = std::chrono::ceil<milliseconds>(ttl).count(),
                    .is_draining = is_draining_};
  if (broker_.is_lost_for(kBrokerSilent)) return record;
  HostFacts facts = broker_.state().facts();
  record.doors = options_.doors;
  record.models = std::move(facts.models);
  record.free_blocks = facts.free_blocks;
  record.audit_head = std::move(facts.audit_head);
  return fitted(std::move(record));
}

awaitable<void> Agent::beat() {
  has_news_ = false;
  if (has_lost_broker()) {
    co_return report_lost({Errc::BrokerLost,
                           "the broker takes no ceiling, so this host does not beat; check that "
                           "the broker runs"});
  }
  const HostRecord record = next_record();
  auto call = membership_.next_call(record);
  if (!call) co_return report_lost(call.error());
  const TimePoint ceiling = membership_.ceiling();
  membership_.sent(record, clock_.now());
  if (const auto written = save(); !written) co_return report_lost(written.error());
  if (membership_.ceiling() < ceiling) tell_broker();  // it had none, and has one now
  fault_point(FaultSite::CellBeatSent);
  etcd::Transaction transaction = *std::move(call);
  const auto reply = co_await etcd_.commit(std::move(transaction));
  if (!reply) co_return report_lost(reply.error());
  const auto change = membership_.replied(*reply);
  if (!change) co_return report_lost(change.error());
  fault_point(FaultSite::CellBeatArrived);
  if (lost_) spdlog::info("beats arrive again");
  lost_.reset();
  // Save the join at once. An error is reported when the next beat writes the file.
  (void)save();
  tell_broker();
  enter(*change);
  if (*change == MembershipChange::NameInUse) {
    co_await expire_own_name(*reply);
  } else if (*change != MembershipChange::Fenced) {
    obey_operator();
  }
}

/// A successor undrains what this agent has drained, also if that is due already.
Result<void> Agent::save() const {
  auto saved = membership_.saved();
  if (saved) saved->is_draining = broker_.state().has_drained();
  return file_.write(saved);
}

void Agent::report_member() const {
  notify_service_manager(
      fmt::format("STATUS=Member of {} as {}", options_.address.cell.value, options_.host.value));
}

void Agent::enter(MembershipChange change) {
  switch (change) {
    case MembershipChange::Joined: {
      own_name_.reset();
      is_past_ceiling_ = false;
      const auto owner = membership_.owner();
      spdlog::info("host joined cell={} host={} incarnation={} ceiling_in_ms={}",
                   options_.address.cell.value, options_.host.value, owner->incarnation.value,
                   time_to(membership_.ceiling(), clock_.now()));
      report_member();
      return;
    }
    case MembershipChange::Renewed:
      if (membership_.may_run(clock_.now()) && std::exchange(is_past_ceiling_, false))
        spdlog::info("ceiling renewed host={}", options_.host.value);
      spdlog::debug("beat arrived ceiling_in_ms={}", time_to(membership_.ceiling(), clock_.now()));
      return;
    case MembershipChange::Fenced:
      is_past_ceiling_ = false;
      spdlog::error(
          "host fenced host={} reason=\"another process deleted or replaced its key\"; it "
          "joins again without parts",
          options_.host.value);
      return;
    case MembershipChange::NameInUse:
      if (own_name_) return;
      own_name_.emplace(keys_, config_.slack());
      spdlog::warn(
          "name in use host={} reason=\"another host has this name, or an earlier agent of "
          "this host lost its --state-dir\"; give one of two hosts another --host; a silent "
          "one is expired after its TTL",
          options_.host.value);
  }
}

/// A host that lost its state waits for its own earlier membership to expire, by the rule for all
/// observers.
awaitable<void> Agent::expire_own_name(const etcd::TransactionReply& refusal) {
  own_name_->listed(refusal.found.front(), clock_.now());
  for (Expiry& expiry : own_name_->expired(clock_.now())) {
    etcd::Transaction transaction = std::move(expiry.transaction);
    const auto reply = co_await etcd_.commit(std::move(transaction));
    if (reply && reply->succeeded) spdlog::info("silent host expired host={}", expiry.host.value);
  }
}

void Agent::obey_operator() {
  const auto& wanted = membership_.wanted();
  if (!wanted) {
    spdlog::warn("operator's key not read code={} reason=\"{}\"", name(wanted.error().code),
                 wanted.error().detail);
  } else if (std::exchange(is_draining_, wanted->is_draining) != wanted->is_draining) {
    spdlog::info("{} host={}", is_draining_ ? "host drains" : "host no longer drains",
                 options_.host.value);
    beat_soon();
  }
  broker_.state().set_draining(is_draining_);
}

/// Logs the error once for each reason, not for each attempt.
void Agent::report_lost(const Error& error) {
  if (std::exchange(lost_, error.code) == error.code) return;
  const bool is_member = membership_.is_member();
  const std::string left =
      is_member ? fmt::format(" ceiling_in_ms={}", time_to(membership_.ceiling(), clock_.now()))
                : "";
  spdlog::warn("no beat arrives code={} reason=\"{}\"{}", name(error.code), error.detail, left);
}

void Agent::report_ceiling() {
  if (!membership_.is_member() || membership_.may_run(clock_.now())) return;
  if (std::exchange(is_past_ceiling_, true)) return;
  spdlog::error("ceiling has passed host={}; cell tenants do not run until a beat arrives",
                options_.host.value);
}

}  // namespace leasehold::cell

#include "tools/gateway/cell/cell_hosts.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "common/cli/print_error.hpp"
#include "common/fault_point.hpp"
#include "ipc/http/http_await.hpp"
#include "tools/gateway/decide/cell_doors.hpp"

namespace leasehold::gateway {
namespace {

namespace asio = boost::asio;
using asio::awaitable;

/// Shorter than SilentHosts::kContactGap, with a call that fails in between.
constexpr std::chrono::milliseconds kReadInterval{1'000};

/// Logs the error once for each reason, not for each attempt.
void report_once(std::optional<Errc>& last, std::string_view what, const Error& error) {
  if (std::exchange(last, error.code) == error.code) return;
  spdlog::warn("{} code={} reason=\"{}\"", what, name(error.code), printable(error.detail));
}

}  // namespace

CellHosts::CellHosts(cell::CellAddress address, Dependencies dependencies)
    : deps_(dependencies),
      address_(std::move(address)),
      keys_(address_.cell),
      silent_(keys_, cell::CellConfig{}.slack()),
      etcd_(deps_.io, address_.etcd) {}

void CellHosts::start() {
  asio::co_spawn(deps_.io, follow(), asio::detached);
  asio::co_spawn(deps_.io, keep_contact(), asio::detached);
}

/// The watch ends when etcd refuses it for good, and when `check_watch` closes it.
awaitable<void> CellHosts::follow() {
  asio::steady_timer pause(deps_.io);
  while (true) {
    watcher_ = std::make_unique<etcd::Client>(deps_.io, address_.etcd);
    const Result<void> ended = co_await watcher_->watch(keys_.hosts(), *this);
    const Errc code = ended.error().code;
    if (code != Errc::PermissionDenied && code != Errc::UnknownMethod) continue;
    report_once(refused_, "hosts of the cell are not followed", ended.error());
    pause.expires_after(kReadInterval);
    co_await pause.async_wait(http::kAwait);
  }
}

void CellHosts::on_listing(std::vector<etcd::KeyValue> entries, etcd::Revision revision) {
  watch_check_.listed(entries, revision);
  refused_.reset();
  silent_.listed(entries, deps_.clock.now());
  use_hosts();
}

void CellHosts::on_events(std::vector<etcd::WatchEvent> events) {
  const TimePoint now = deps_.clock.now();
  bool has_changed = false;
  for (const etcd::WatchEvent& event : events) {
    watch_check_.reported(event);
    has_changed = silent_.changed(event, now) || has_changed;
  }
  if (has_changed) use_hosts();
}

/// Reads say whether etcd can be reached.
void CellHosts::on_interrupted(const Error& error) {
  spdlog::debug("watch of hosts interrupted code={} reason=\"{}\"", name(error.code),
                printable(error.detail));
}

awaitable<void> CellHosts::keep_contact() {
  asio::steady_timer pause(deps_.io);
  while (true) {
    co_await look();
    pause.expires_after(kReadInterval);
    co_await pause.async_wait(http::kAwait);
  }
}

/// Reads the config, and of the hosts what is compared with the reports of the watch.
awaitable<void> CellHosts::look() {
  etcd::Transaction reads;
  reads.success.emplace_back(etcd::Get{etcd::KeyRange::one(keys_.config())});
  reads.success.emplace_back(etcd::Get{.range = keys_.hosts(), .newest_only = true});
  const std::size_t asked = reads.success.size();
  auto reply = co_await etcd_.commit(std::move(reads));
  if (!reply) co_return report_lost(reply.error());
  if (reply->found.size() != asked) {
    co_return report_lost(
        {Errc::MalformedMessage, "etcd's reply has not a list for each key; check etcd"});
  }
  const TimePoint now = deps_.clock.now();
  deps_.metrics.reached_at = now;
  if (std::exchange(lost_, std::nullopt)) spdlog::info("etcd answers again");
  silent_.contacted(now);
  read_config(reply->found.front());
  check_watch(*reply);
  deps_.hosts.forget_gone();
  co_await expire_silent(now);
}

/// An error keeps the slack of before.
void CellHosts::read_config(const std::vector<etcd::KeyValue>& found) {
  cell::CellConfig config;
  if (!found.empty()) {
    const auto read = cell::read_config(keys_.config(), found.front().value);
    if (!read) return report_lost(read.error());
    config = *read;
  }
  silent_.set_slack(config.slack());
}

void CellHosts::check_watch(const etcd::TransactionReply& read) {
  const auto& found = read.found.back();
  const HostKeys keys{.newest = found.empty() ? etcd::Revision() : found.front().modified,
                      .count = static_cast<std::size_t>(read.counts.back()),
                      .revision = read.revision};
  if (!watch_check_.is_behind(keys)) return;
  spdlog::warn("watch of hosts is behind; it begins again at another member of etcd");
  watch_check_.reset();
  watcher_->close();
}

/// A refusal means that a newer beat has arrived, or that another observer was first.
awaitable<void> CellHosts::expire_silent(TimePoint now) {
  for (cell::Expiry& expiry : silent_.expired(now)) {
    // The watch may report the removal before the reply to the transaction arrives.
    spdlog::info("expiring a silent host host={}", expiry.host.value);
    fault_point(FaultSite::GatewayExpiryDecided);
    etcd::Transaction transaction = std::move(expiry.transaction);
    const auto reply = co_await etcd_.commit(std::move(transaction));
    if (!reply) co_return report_lost(reply.error());
    silent_.refused(expiry.host, deps_.clock.now());
    if (!reply->succeeded) continue;
    fault_point(FaultSite::GatewayHostExpired);
    ++deps_.metrics.expired;
    spdlog::warn("silent host expired host={}; it has stopped by itself", expiry.host.value);
  }
}

void CellHosts::use_hosts() {
  CellDoors found = doors_of(silent_.hosts());
  std::vector<Hosts::Door> doors;
  for (CellMember& member : found.members) {
    auto address = HostAddress::parse(member.address);
    if (!address) {
      found.problems.push_back(address.error().detail);
    } else if (address->is_exposed() && !deps_.allows_plaintext) {
      found.problems.push_back(
          fmt::format("the door {} is on another machine and not encrypted; give it https://, or "
                      "start this gateway with --plaintext-hosts",
                      member.address));
    } else {
      doors.push_back({.address = *std::move(address), .member = std::move(member)});
    }
  }
  deps_.metrics.members = silent_.hosts().size();
  problems_.report(std::move(found.problems));
  deps_.hosts.set_doors(doors);
}

void CellHosts::report_lost(const Error& error) {
  report_once(lost_, "etcd cannot be used; the known hosts stay", error);
}

}  // namespace leasehold::gateway

#include "tools/gateway/hosts.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <utility>

#include "common/cli/print_error.hpp"

namespace leasehold::gateway {
namespace {

namespace asio = boost::asio;
using asio::awaitable;

constexpr std::size_t kMaxReportBytes = 1 << 20;

/// Why a host does not say what it serves.
Error not_a_report(const HostAddress& address, int status) {
  if (status == 403) {
    return {Errc::PermissionDenied,
            fmt::format("host {} does not trust this gateway; name the gateway's address in the "
                        "worker's --http-trusted-proxy",
                        address.text)};
  }
  return {Errc::MalformedMessage,
          fmt::format("host {} answers {} to GET /leasehold/host; it must be a leasehold-worker "
                      "with --http, of a version that continues texts",
                      address.text, status)};
}

std::vector<std::string> texts_of(const std::vector<HostAddress>& addresses) {
  std::vector<std::string> texts;
  for (const HostAddress& address : addresses) texts.push_back(address.text);
  return texts;
}

}  // namespace

Hosts::Hosts(asio::io_context& io, const Clock& clock, HostTable table, http::TlsClient tls)
    : io_(io),
      clock_(clock),
      table_(std::move(table)),
      tls_(std::move(tls)),
      forgotten_(io, {.text = std::string(kForgottenAddress), .unix_path = {}}, &tls_) {
  forgotten_.set_incarnation({});
}

Result<std::unique_ptr<Hosts>> Hosts::create(asio::io_context& io, const Clock& clock,
                                             const std::vector<HostAddress>& addresses,
                                             http::TlsClient tls) {
  auto table = TRY(HostTable::create(texts_of(addresses), kPollInterval + kPollTimeout));
  auto hosts = std::unique_ptr<Hosts>(new Hosts(io, clock, std::move(table), std::move(tls)));
  for (const HostId host : hosts->table_.ids())
    hosts->add(host,
               *std::ranges::find(addresses, hosts->table_.address(host), &HostAddress::text));
  return hosts;
}

std::unique_ptr<Hosts> Hosts::of_cell(asio::io_context& io, const Clock& clock,
                                      http::TlsClient tls) {
  return std::unique_ptr<Hosts>(
      new Hosts(io, clock, HostTable::of_cell(kPollInterval + kPollTimeout), std::move(tls)));
}

void Hosts::add(HostId host, const HostAddress& address) {
  if (hosts_.contains(host)) return;
  hosts_.emplace(host, Host{.link = std::make_shared<HostLink>(io_, address, &tls_)});
}

HostLink& Hosts::link(HostId host) {
  const auto found = hosts_.find(host);
  return found != hosts_.end() ? *found->second.link : forgotten_;
}

void Hosts::forget_gone() {
  for (const HostId host : table_.forget_gone(clock_.now())) hosts_.erase(host);
}

void Hosts::start() {
  is_started_ = true;
  for (const HostId host : all()) begin_watch(host);
}

Result<void> Hosts::set_list(const std::vector<HostAddress>& addresses) {
  const HostChanges changes = TRY(table_.set_list(texts_of(addresses)));
  for (const HostId host : changes.added)
    add(host, *std::ranges::find(addresses, table_.address(host), &HostAddress::text));
  begin_added(changes.added);
  for (const HostId host : changes.removed) {
    spdlog::info(
        "host removed host={} running_requests={}; texts continue on other hosts, or stay there if "
        "no other host computes alike",
        table_.address(host), table_.started_on(host));
  }
  forget_gone();
  return {};
}

void Hosts::begin_added(const std::vector<HostId>& added) {
  for (const HostId host : added) {
    spdlog::info("host added host={}", table_.address(host));
    if (is_started_) begin_watch(host);
  }
}

/// The table changes first: an exchange whose connection is closed below must find its host gone.
void Hosts::set_doors(const std::vector<Door>& doors) {
  std::vector<CellMember> members;
  std::map<std::string_view, const HostAddress*> addresses;
  for (const Door& door : doors) {
    members.push_back(door.member);
    addresses.emplace(door.member.address, &door.address);
  }
  const HostChanges changes = table_.set_members(members);
  for (const HostId host : changes.added) add(host, *addresses.at(table_.address(host)));
  for (const auto& [id, host] : hosts_)
    host.link->set_incarnation(table_.incarnation(id).value_or(Incarnation{}));
  begin_added(changes.added);
  for (const HostId host : changes.renewed)
    spdlog::warn(
        "host joined again host={} incarnation={}; texts of its earlier membership "
        "continue on other hosts",
        table_.address(host), table_.incarnation(host)->value);
  for (const HostId host : changes.removed)
    spdlog::warn("host left its cell host={} running_requests={}; texts continue on other hosts",
                 table_.address(host), table_.started_on(host));
}

void Hosts::begin_watch(HostId host) {
  if (std::exchange(hosts_.at(host).is_watched, true)) return;
  asio::co_spawn(io_, watch(host), asio::detached);
}

bool Hosts::is_needed(HostId host) const {
  return table_.is_listed(host) || table_.started_on(host) > 0;
}

awaitable<void> Hosts::watch(HostId host) {
  asio::steady_timer pause(io_);
  const std::shared_ptr<HostLink> link = hosts_.at(host).link;
  std::string last;
  while (!is_stopping_ && is_needed(host)) {
    const std::optional<Incarnation> asked = table_.incarnation(host);
    Result<HostReport> report = co_await ask(*link);
    // The answer of a gone incarnation may have arrived just before its connection was closed.
    if (table_.incarnation(host) == asked) note(host, std::move(report), last);
    pause.expires_after(kPollInterval);
    co_await pause.async_wait(http::kAwait);
  }
  if (const auto found = hosts_.find(host); found != hosts_.end()) found->second.is_watched = false;
  if (is_stopping_) co_return;
  table_.unreachable(host);
  compare_identities();
  link->close_idle();
  spdlog::info("host left host={}", table_.address(host));
}

awaitable<Result<HostReport>> Hosts::ask(HostLink& link) {
  const Result<void> resolved = co_await link.resolve(kPollTimeout);
  if (!resolved) co_return std::unexpected(resolved.error());
  std::string request =
      fmt::format("GET /leasehold/host HTTP/1.1\r\nHost: {}\r\n\r\n", link.address().authority());
  HostLink::Call call{.request = std::move(request), .timeout = kPollTimeout};
  auto asked = co_await link.exchange(std::move(call));
  if (!asked) co_return std::unexpected(asked.error());
  auto body = co_await asked->connection->read_whole_body(kPollTimeout, kMaxReportBytes);
  link.keep(asked->connection);
  if (!body) co_return std::unexpected(body.error());
  if (asked->answer.status != 200)
    co_return std::unexpected(not_a_report(link.address(), asked->answer.status));
  co_return HostReport::parse(*body);
}

/// Called when the report of a host has changed: the cost is that of all reports.
void Hosts::compare_identities() {
  identities_ = served_identities(table_, clock_.now());
  differences_.report(identity_differences(table_, identities_));
}

/// Logs changes only. `last` is what was logged last.
void Hosts::note(HostId host, Result<HostReport> report, std::string& last) {
  const std::string& address = table_.address(host);
  std::string line;
  const bool reported = report.has_value();
  const HostReport* const before = table_.report(host);
  const bool has_same_models = !reported || (before != nullptr && before->models == report->models);
  if (reported) {
    table_.reported(host, *std::move(report), clock_.now());
    const HostReport& known = *table_.report(host);
    line = fmt::format("host changed host={} name={} state={} models={}{}", address,
                       printable(known.name), name(state(host)), known.models.size(),
                       known.code.empty() ? "" : " code=" + printable(known.code));
  } else {
    table_.unreachable(host);
    line = fmt::format("host lost host={} code={} reason=\"{}\"", address,
                       leasehold::name(report.error().code), printable(report.error().detail));
  }
  if (line == last && has_same_models) return;
  if (line != last) reported ? spdlog::info("{}", line) : spdlog::warn("{}", line);
  last = std::move(line);
  compare_identities();
}

std::size_t Hosts::count(HostState state) const {
  const auto hosts = all();
  return static_cast<std::size_t>(
      std::ranges::count_if(hosts, [&](HostId host) { return this->state(host) == state; }));
}

std::vector<HostId> Hosts::all() const {
  std::vector<HostId> hosts;
  for (const auto& [id, host] : hosts_)
    if (is_needed(id)) hosts.push_back(id);
  return hosts;
}

std::size_t Hosts::size() const {
  const auto hosts = all();
  return static_cast<std::size_t>(
      std::ranges::count_if(hosts, [&](HostId host) { return table_.is_listed(host); }));
}

std::vector<HostId> Hosts::answering() const {
  std::vector<HostId> hosts = all();
  std::erase_if(hosts, [&](HostId host) {
    return state(host) == HostState::Silent || state(host) == HostState::NotReady;
  });
  return hosts;
}

}  // namespace leasehold::gateway

#include "tools/gateway/forward/holders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tools/gateway/decide/place.hpp"
#include "tools/gateway/forward/host_answer.hpp"

namespace leasehold::gateway {
namespace {

using boost::asio::awaitable;

constexpr AnswerLimits kNotFoundLimits{.timeout = std::chrono::seconds(5), .max_bytes = 64 << 10};
constexpr std::string_view kFilesPlace = "/v1/files";

/// The hosts that may have what a request names; the most likely first.
std::vector<HostId> holders(const Shared& shared, const ClientExchange& client, bool is_kept) {
  const HostTable& table = shared.hosts.table();
  std::vector<HostId> hosts = shared.hosts.answering();
  if (is_kept) std::erase_if(hosts, [&](HostId host) { return !table.report(host)->keeps_files; });
  std::ranges::sort(hosts, std::ranges::greater{}, [&](HostId host) {
    return placement_weight(files_digest(client), table.address(host));
  });
  return hosts;
}

/// Those in the list that may have it and do not answer.
std::size_t silent_hosts(const Shared& shared, bool is_kept) {
  const HostTable& table = shared.hosts.table();
  const std::vector<HostId> answering = shared.hosts.answering();
  const auto hosts = shared.hosts.all();
  return static_cast<std::size_t>(std::ranges::count_if(hosts, [&](HostId host) {
    const HostReport* report = table.report(host);
    const bool may_have_it = !is_kept || report == nullptr || report->keeps_files;
    return may_have_it && std::ranges::find(answering, host) == answering.end();
  }));
}

/// No host said that it has what the request names. `silent` hosts said nothing.
awaitable<void> answer_not_found(Shared& shared, ClientExchange& client, bool is_kept,
                                 std::size_t silent, std::optional<WholeAnswer> last) {
  if (last && (silent == 0 || !is_kept)) {
    co_await pass_whole(shared, client, *std::move(last));
    co_return;
  }
  Error error{
      Errc::NoModelLoaded,
      fmt::format("{} of {} hosts do not answer, and no other one has what the request names; "
                  "retry, or ask the operator",
                  silent, shared.hosts.size())};
  error.retry_after_ms = 1'000;
  if (silent == 0) {
    const PlaceQuery query{.needs_files = true};
    const auto host = place(shared.hosts.table(), query, shared.clock.now());
    if (!host) error = host.error();
  }
  http::Answer answer = no_host_answer(client, error);
  co_await client.send(std::move(answer));
}

awaitable<void> ask_holders(Shared& shared, ClientExchange& client, Held request) {
  const http::Head& head = client.head();
  std::optional<WholeAnswer> last;
  std::size_t silent = silent_hosts(shared, request.is_kept);
  for (const HostId host : holders(shared, client, request.is_kept)) {
    const RunningOn running(shared.hosts.table(), host);
    HostWatch::Request watched{.host = host};
    const HostWatch watch(shared, client, std::move(watched));
    auto exchange = co_await begin_exchange(shared, client, watch, request.body);
    if (client.stream().is_ended()) co_return;
    if (!exchange) {
      const bool is_unseen = exchange.error().code == Errc::ConnectionRefused;
      if (is_unseen) shared.hosts.table().unreachable(host);
      ++silent;
      const bool goes_on = is_unseen || is_repeatable(head.method, head.path());
      if (goes_on && !shared.is_cut) continue;
      co_await client.fail(exchange.error());  // the host may have done it
      co_return;
    }
    if (exchange->answer.status != kNotFound) {
      HostAnswer answer{.host = host, .exchange = *std::move(exchange), .watch = &watch};
      co_return co_await pass_answer(shared, client, std::move(answer));
    }
    auto read = co_await read_whole_answer(shared, host, *std::move(exchange), kNotFoundLimits);
    if (client.stream().is_ended()) co_return;
    read ? void(last = *std::move(read)) : void(++silent);
  }
  co_await answer_not_found(shared, client, request.is_kept, silent, std::move(last));
}

}  // namespace

std::uint64_t files_digest(const ClientExchange& client) {
  return placement_digest(client.head().api_key(), kFilesPlace);
}

/// A plain function: the frame of a coroutine here would have types of the anonymous namespace.
awaitable<void> answer_on_holder(Shared& shared, ClientExchange& client, Held request) {
  return ask_holders(shared, client, std::move(request));
}

}  // namespace leasehold::gateway

#include "tools/gateway/forward/lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "common/cli/terminal_text.hpp"
#include "ipc/http/http_errors.hpp"
#include "ipc/http/http_url.hpp"
#include "tools/gateway/decide/list_page.hpp"
#include "tools/gateway/decide/place.hpp"
#include "tools/gateway/forward/host_answer.hpp"
#include "tools/gateway/host_request.hpp"

namespace leasehold::gateway {
namespace {

using boost::asio::awaitable;
using Json = nlohmann::json;

constexpr AnswerLimits kListLimits{.timeout = std::chrono::seconds(10), .max_bytes = 4 << 20};
constexpr std::size_t kMostRequests = 10'000;  // of one page
constexpr int kMostPages = 100;                // of one host

/// The limits of a page: a worker's (worker/http/batch).
struct PageLimits {
  std::size_t otherwise = 0;
  std::size_t most = 0;
  std::size_t fetched = 0;  ///< Number to request from a host at once.
};
constexpr PageLimits kFileLimits{.otherwise = 1'000, .most = 10'000, .fetched = 1'000};
constexpr PageLimits kBatchLimits{.otherwise = 20, .most = 100, .fetched = 100};

/// What the client asks for of a list.
struct ListQuery {
  http::PageQuery page;
  PageLimits limits;
  ListOrder order = ListOrder::NewestFirst;
  std::string target;  ///< The path and the fields of the query that every host gets; `limit` and
                       ///< `after` follow.
};

/// The hosts that a list is made of, in the order of their addresses.
struct ListHosts {
  std::vector<HostId> asked;
  std::size_t missing = 0;
};

/// Asks one host for this target and reads its whole answer.
awaitable<Result<WholeAnswer>> fetch(Shared& shared, ClientExchange& client, HostId host,
                                     std::string target) {
  const RunningOn running(shared.hosts.table(), host);
  HostLink& link = shared.hosts.link(host);
  http::Head head = client.head();
  head.target = std::move(target);
  const HostRequest request{.client = &head,
                            .host = link.address().authority(),
                            .x_request_id = client.x_request_id(),
                            .client_address = client.parties().client};
  HostLink::Call call{.request = request.text(), .timeout = kListLimits.timeout};
  auto exchange = co_await link.exchange(std::move(call));
  if (!exchange) co_return std::unexpected(exchange.error());
  co_return co_await read_whole_answer(shared, host, *std::move(exchange), kListLimits);
}

/// Sends a list without the entries of `missing` hosts.
awaitable<bool> send_list(Shared& shared, ClientExchange& client, Json list, std::size_t missing) {
  note_key(shared, client, kOk);
  Fields fields;
  fields.emplace_back("Content-Type", "application/json");
  if (missing > 0) fields.emplace_back("Leasehold-Missing-Hosts", std::to_string(missing));
  std::string body = escape_controls(list.dump(-1, ' ', false, Json::error_handler_t::replace));
  co_return co_await client.send_whole(kOk, fields, std::move(body));
}

Error no_host(const Hosts& hosts) {
  Error error{Errc::NoModelLoaded,
              fmt::format("none of {} hosts can serve; retry, or ask the operator", hosts.size())};
  error.retry_after_ms = 1'000;
  return error;
}

ListHosts list_hosts(const Shared& shared, bool keeps_files) {
  const HostTable& table = shared.hosts.table();
  ListHosts hosts;
  const std::vector<HostId> answering = shared.hosts.answering();
  for (const HostId host : shared.hosts.all()) {
    const HostReport* report = table.report(host);
    if (keeps_files && report != nullptr && !report->keeps_files) continue;
    const bool answers = std::ranges::find(answering, host) != answering.end();
    answers ? hosts.asked.push_back(host) : (void)++hosts.missing;
  }
  std::ranges::sort(hosts.asked, {}, [&](HostId host) { return table.address(host); });
  return hosts;
}

/// The entries of a host. Errors: those of `fetch` and read_host_list. Another status than 200 is
/// in `refused`.
awaitable<Result<HostList>> fetch_list(Shared& shared, ClientExchange& client, HostId host,
                                       std::string target, std::optional<WholeAnswer>& refused) {
  auto answer = co_await fetch(shared, client, host, std::move(target));
  if (!answer) co_return std::unexpected(answer.error());
  if (answer->status == 200) co_return read_host_list(answer->body);
  refused = *std::move(answer);
  co_return HostList{};
}

/// What follows the '?' of the target.
std::string_view query_of(const http::Head& head) {
  const std::string_view target = head.target;
  const std::size_t mark = target.find('?');
  return mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
}

/// Page queries are wrong only in their limit.
http::Answer wrong_page(const Error& error) {
  return http::error_answer({error, "limit"});
}

Result<ListQuery> list_query(const http::Head& head) {
  const std::string_view path = head.path();
  const std::string_view query = query_of(head);
  ListQuery list{.limits = path == "/v1/files" ? kFileLimits : kBatchLimits};
  list.page = TRY(http::page_query(query, list.limits.otherwise, list.limits.most));
  const std::string order = http::query_value(query, "order");
  if (order == "asc" && path == "/v1/files") list.order = ListOrder::OldestFirst;
  list.target = fmt::format("{}?", path);
  for (const char* field : {"order", "purpose"})
    if (const std::string value = http::query_value(query, field); !value.empty())
      list.target += fmt::format("{}={}&", field, http::percent_encoded(value));
  return list;
}

/// Finds the entry that the page follows. Nothing if no host has it; another error of a host is in
/// `refused`.
awaitable<std::optional<ListPosition>> find_entry(Shared& shared, ClientExchange& client,
                                                  ListHosts& hosts, const std::string& id,
                                                  std::optional<WholeAnswer>& refused) {
  for (std::size_t at = 0; at < hosts.asked.size();) {
    std::string target = fmt::format("{}/{}", client.head().path(), http::percent_encoded(id));
    auto answer = co_await fetch(shared, client, hosts.asked[at], std::move(target));
    if (!answer) {
      hosts.asked.erase(hosts.asked.begin() + static_cast<std::ptrdiff_t>(at));
      ++hosts.missing;
      continue;
    }
    if (answer->status != 200 && answer->status != 404) {
      refused = *std::move(answer);
      co_return std::nullopt;
    }
    const std::string one = fmt::format("{{\"data\":[{}]}}", answer->body);
    const auto entry = read_host_list(one);
    if (entry && entry->entries.size() == 1) co_return position_of(entry->entries[0], at);
    ++at;
  }
  co_return std::nullopt;
}

/// Reads pages of a host until they have enough entries after the one that the page follows.
awaitable<Result<HostList>> read_after(Shared& shared, ClientExchange& client,
                                       const ListQuery& query, std::pair<HostId, std::size_t> host,
                                       const std::optional<ListPosition>& after,
                                       std::optional<WholeAnswer>& refused) {
  const bool is_own = after && after->host == host.second;
  std::string cursor = is_own ? after->id : "";
  // Another host's list is read from its beginning, so in large pages.
  const std::size_t limit =
      after && !is_own ? query.limits.fetched : std::min(query.limits.fetched, query.page.limit);
  HostList found;
  for (int pages = 0; pages < kMostPages; ++pages) {
    std::string target = fmt::format("{}limit={}", query.target, limit);
    if (!cursor.empty()) target += "&after=" + http::percent_encoded(cursor);
    auto page = co_await fetch_list(shared, client, host.first, std::move(target), refused);
    if (!page || refused) co_return page;
    for (Json& entry : page->entries) {
      ListPosition position = position_of(entry, host.second);
      cursor = position.id;
      if (!after || is_own || precedes(*after, position, query.order))
        found.entries.push_back(std::move(entry));
    }
    found.has_more = page->has_more;
    const bool is_last = !page->has_more || page->entries.empty();
    if (is_last || found.entries.size() >= query.page.limit) co_return found;
    if (client.stream().is_ended()) break;
  }
  co_return fail(Errc::MalformedMessage, fmt::format("host {}: its list does not end",
                                                     shared.hosts.table().address(host.first)));
}

awaitable<void> merge_models(Shared& shared, ClientExchange& client) {
  std::set<std::string> missing;
  std::size_t missing_hosts = list_hosts(shared, false).missing;
  const HostTable& table = shared.hosts.table();
  for (const HostId host : shared.hosts.answering())
    for (const ServedModel& model : table.report(host)->models) missing.insert(model.id);
  Json all = Json::array();
  std::set<std::string> listed;
  std::optional<Error> error;
  for (const HostId host : shared.hosts.answering()) {
    const HostReport* report = table.report(host);
    if (report == nullptr) continue;  // it was forgotten while another host answered
    const bool is_new = std::ranges::any_of(
        report->models, [&](const ServedModel& model) { return missing.contains(model.id); });
    if (!is_new) continue;
    std::optional<WholeAnswer> refused;
    auto list = co_await fetch_list(shared, client, host, client.head().target, refused);
    if (refused) co_return (void) co_await pass_whole(shared, client, *std::move(refused));
    if (!list) {
      error = list.error();
      ++missing_hosts;
      continue;
    }
    for (Json& entry : list->entries) {
      const std::string id = position_of(entry, 0).id;
      missing.erase(id);
      if (listed.insert(id).second) all.push_back(std::move(entry));
    }
  }
  if (listed.empty()) co_return (void) co_await client.fail(error.value_or(no_host(shared.hosts)));
  Json list = Json::object();
  list["object"] = "list";
  list["data"] = std::move(all);
  co_await send_list(shared, client, std::move(list), missing_hosts);
}

awaitable<void> merge_requests(Shared& shared, ClientExchange& client) {
  const http::Head& head = client.head();
  const auto page = http::page_query(query_of(head), kMostRequests, kMostRequests);
  if (!page) {
    http::Answer answer = wrong_page(page.error());
    co_return (void) co_await client.send(std::move(answer));
  }
  ListHosts hosts = list_hosts(shared, false);
  std::vector<HostList> lists;
  for (const HostId host : hosts.asked) {
    std::optional<WholeAnswer> refused;
    auto list = co_await fetch_list(shared, client, host, std::string(head.path()), refused);
    if (refused) co_return (void) co_await pass_whole(shared, client, *std::move(refused));
    if (!list) {
      ++hosts.missing;
      continue;
    }
    std::erase_if(list->entries, [&](const Json& entry) {
      return !page->after.empty() && position_of(entry, 0).id <= page->after;
    });
    for (Json& entry : list->entries) entry["host"] = shared.hosts.table().report(host)->name;
    lists.push_back(*std::move(list));
  }
  if (lists.empty()) co_return (void) co_await client.fail(no_host(shared.hosts));
  Json merged = page_of(std::move(lists), page->limit, ListOrder::ById);
  co_await send_list(shared, client, std::move(merged), hosts.missing);
}

awaitable<void> merge_files(Shared& shared, ClientExchange& client) {
  const auto query = list_query(client.head());
  if (!query) {
    http::Answer answer = wrong_page(query.error());
    co_return (void) co_await client.send(std::move(answer));
  }
  ListHosts hosts = list_hosts(shared, true);
  std::optional<WholeAnswer> refused;
  std::optional<ListPosition> after;
  if (!query->page.after.empty()) {
    after = co_await find_entry(shared, client, hosts, query->page.after, refused);
    if (refused) co_return (void) co_await pass_whole(shared, client, *std::move(refused));
  }
  std::vector<HostList> lists;
  std::size_t answered = 0;
  const bool has_place = after || query->page.after.empty();
  for (std::size_t at = 0; has_place && at < hosts.asked.size(); ++at) {
    const std::pair host(hosts.asked[at], at);
    auto list = co_await read_after(shared, client, *query, host, after, refused);
    if (refused) co_return (void) co_await pass_whole(shared, client, *std::move(refused));
    lists.emplace_back();
    if (list) {
      lists.back() = *std::move(list);
      ++answered;
    } else {
      ++hosts.missing;
    }
  }
  // An empty page would look like the end of the list.
  if (answered == 0 && hosts.missing > 0)
    co_return (void) co_await client.fail(no_host(shared.hosts));
  if (hosts.asked.empty()) {
    const PlaceQuery files{.needs_files = true};
    const auto host = place(shared.hosts.table(), files, shared.clock.now());
    http::Answer answer = no_host_answer(client, host ? no_host(shared.hosts) : host.error());
    co_return (void) co_await client.send(std::move(answer));
  }
  Json page = page_of(std::move(lists), query->page.limit, query->order);
  co_await send_list(shared, client, std::move(page), hosts.missing);
}

}  // namespace

// Plain functions: the frame of a coroutine here would have types of the anonymous namespace.

awaitable<void> answer_models(Shared& shared, ClientExchange& client) {
  return merge_models(shared, client);
}

awaitable<void> answer_requests(Shared& shared, ClientExchange& client) {
  return merge_requests(shared, client);
}

awaitable<void> answer_files(Shared& shared, ClientExchange& client) {
  return merge_files(shared, client);
}

}  // namespace leasehold::gateway

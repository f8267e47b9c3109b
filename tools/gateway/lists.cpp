#include "tools/gateway/lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "common/cli/terminal_text.hpp"
#include "tools/gateway/forward.hpp"

namespace leasehold::gateway {
namespace {

using boost::asio::awaitable;
using Json = nlohmann::json;

constexpr std::chrono::seconds kListTimeout{10};
constexpr std::size_t kMaxListBytes = 4 << 20;

/// Asks one host and reads its whole answer.
awaitable<Result<WholeAnswer>> fetch(Shared& shared, ClientExchange& client, HostId host) {
  std::string text = request_to(shared, client, host, {});
  HostLink::OnConnected nothing;
  HostLink& link = shared.hosts.link(host);
  auto exchange = co_await link.exchange(std::move(text), client.head().method != "HEAD",
                                         kListTimeout, nothing);
  if (!exchange) co_return std::unexpected(exchange.error());
  auto body = co_await exchange->connection->read_whole_body(kListTimeout, kMaxListBytes);
  if (!body) {
    exchange->connection->close();
    co_return std::unexpected(body.error());
  }
  link.keep(exchange->connection);
  WholeAnswer answer{.status = exchange->answer.status,
                     .fields = passed_on(exchange->answer.head),
                     .body = *std::move(body)};
  co_return answer;
}

/// The entries of a list in the form of OpenAI's API; nothing for another text.
std::optional<Json> entries_of(const std::string& body) {
  Json list = Json::parse(body, nullptr, false);
  if (!list.is_object() || !list.contains("data") || !list["data"].is_array()) return std::nullopt;
  return std::move(list["data"]);
}

http::Answer list_answer(Json entries) {
  const Json list{{"object", "list"}, {"data", std::move(entries)}};
  return {.body = escape_controls(list.dump(-1, ' ', false, Json::error_handler_t::replace))};
}

Error no_host(const Hosts& hosts) {
  Error error{Errc::NoModelLoaded,
              fmt::format("none of {} hosts can serve; retry, or ask the operator", hosts.size())};
  error.retry_after_ms = 1'000;
  return error;
}

awaitable<bool> pass_whole(ClientExchange& client, WholeAnswer answer) {
  if (answer.status == 401) client.end_connection();
  return client.send_whole(answer.status, answer.fields, std::move(answer.body));
}

std::string id_of(const Json& entry) {
  const bool has_id = entry.is_object() && entry.contains("id") && entry["id"].is_string();
  return has_id ? entry["id"].get<std::string>() : std::string();
}

}  // namespace

awaitable<void> answer_models(Shared& shared, ClientExchange& client) {
  std::set<std::string> missing;
  const HostTable& table = shared.hosts.table();
  for (const HostId host : shared.hosts.answering())
    for (const ServedModel& model : table.report(host)->models) missing.insert(model.id);
  Json all = Json::array();
  std::set<std::string> listed;
  std::optional<Error> error;
  for (const HostId host : shared.hosts.answering()) {
    const HostReport& report = *table.report(host);
    const bool is_new = std::ranges::any_of(
        report.models, [&](const ServedModel& model) { return missing.contains(model.id); });
    if (!is_new) continue;
    auto answer = co_await fetch(shared, client, host);
    if (!answer) {
      error = answer.error();
      continue;
    }
    auto entries = entries_of(answer->body);
    if (answer->status != 200 || !entries) {
      co_await pass_whole(client, *std::move(answer));
      co_return;
    }
    for (Json& entry : *entries) {
      missing.erase(id_of(entry));
      if (listed.insert(id_of(entry)).second) all.push_back(std::move(entry));
    }
  }
  if (listed.empty()) co_return (void) co_await client.fail(error.value_or(no_host(shared.hosts)));
  http::Answer answer = list_answer(std::move(all));
  co_await client.send(std::move(answer));
}

awaitable<void> answer_requests(Shared& shared, ClientExchange& client) {
  Json all = Json::array();
  bool has_answer = false;
  for (const HostId host : shared.hosts.answering()) {
    auto answer = co_await fetch(shared, client, host);
    if (!answer) continue;
    auto entries = entries_of(answer->body);
    if (answer->status != 200 || !entries) {
      co_await pass_whole(client, *std::move(answer));
      co_return;
    }
    has_answer = true;
    for (Json& entry : *entries) {
      if (!entry.is_object()) continue;
      entry["host"] = shared.hosts.table().report(host)->name;
      all.push_back(std::move(entry));
    }
  }
  if (!has_answer) co_return (void) co_await client.fail(no_host(shared.hosts));
  http::Answer answer = list_answer(std::move(all));
  co_await client.send(std::move(answer));
}

awaitable<void> answer_cancel(Shared& shared, ClientExchange& client) {
  constexpr int kNotFound = 404;
  std::optional<WholeAnswer> last;
  for (const HostId host : shared.hosts.answering()) {
    auto answer = co_await fetch(shared, client, host);
    if (!answer) continue;
    last = *std::move(answer);
    if (last->status != kNotFound) break;
  }
  if (!last) co_return (void) co_await client.fail(no_host(shared.hosts));
  co_await pass_whole(client, *std::move(last));
}

}  // namespace leasehold::gateway

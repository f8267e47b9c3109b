#include "tools/brokerctl/requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "common/cli/print_error.hpp"
#include "ipc/client/parse_message.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

/// Small enough that the worker's threads are not kept busy by one page.
constexpr std::uint32_t kRequestsPerPage = 500;

std::string tenant_of(const wire::RequestView& view) {
  return view.id.substr(0, view.id.find('/'));
}

/// True for an error of one worker, after which the other workers can still be read.
bool is_of_worker(Errc code) {
  using enum Errc;
  return code == TimedOut || code == BrokerLost || code == ConnectionLost || code == QueueFull ||
         code == UnknownMethod || code == UnknownWorker || code == NoModelLoaded ||
         code == MalformedMessage || code == Draining;
}

/// The next page of a worker's requests.
struct NextPage {
  wire::RequestList list;
  bool is_last = false;
};

/// Adds a page to `rows`, and prepares the worker's next one.
Result<void> add_page(const Result<Json>& reply, NextPage& next, RequestRows& rows) {
  next.is_last = true;
  if (!reply) return std::unexpected(reply.error());
  wire::RequestList& list = next.list;
  auto page = TRY(client::parse_message<wire::RequestPage>(*reply));
  const bool advances = !page.items.empty() && (!list.after || page.items.back().id > *list.after);
  if (!page.items.empty()) list.after = page.items.back().id;
  for (wire::RequestView& view : page.items) {
    view.worker = list.worker;
    rows.requests.push_back(std::move(view));
  }
  std::ranges::move(page.ended, std::back_inserter(rows.ended));
  if (page.more && !advances)
    return fail(Errc::MalformedMessage, "the pages of its requests do not advance");
  next.is_last = !page.more;
  return {};
}

/// Reads a page of each worker.
std::vector<Result<Json>> read_pages(const std::vector<NextPage>& pages,
                                     const Dependencies& dependencies) {
  std::vector<Json> params;
  for (const NextPage& page : pages) params.push_back(page.list.to_json());
  if (dependencies.call_all) return dependencies.call_all(wire::RequestList::kMethod, params);
  std::vector<Result<Json>> replies;
  for (const Json& each : params)
    replies.push_back(dependencies.call(wire::RequestList::kMethod, each));
  return replies;
}

/// The workers to ask. Those that are attached load their model and have no requests.
Result<std::vector<std::string>> workers_to_ask(const std::string& wanted,
                                                const Dependencies& dependencies,
                                                std::vector<SilentWorker>& silent) {
  const Json reply = TRY(dependencies.call("worker.list", Json::object()));
  std::vector<std::string> workers;
  bool is_known = wanted.empty();
  for (const auto& view : TRY(client::parse_items<wire::WorkerView>(reply))) {
    if (!wanted.empty() && view.worker != wanted) continue;
    is_known = true;
    if (view.state == "ready") workers.push_back(view.worker);
    if (view.state == "lost")
      silent.push_back({view.worker, {Errc::BrokerLost, "it has lost its connection"}});
  }
  if (is_known) return workers;
  return fail(Errc::UnknownWorker, fmt::format("no worker {}; see `brokerctl workers`", wanted));
}

struct Target {
  std::string worker;
  std::vector<std::string> ids;
};

Error unknown_error(const std::string& name, const RequestRows& rows) {
  if (!rows.silent.empty()) return silent_error(rows.silent);
  if (rows.ended.empty()) {
    return {Errc::UnknownRequest,
            fmt::format("no worker has a request {}; see `brokerctl requests`", name)};
  }
  const wire::EndedRequest& end = rows.ended.front();
  return {Errc::UnknownRequest, fmt::format("request {} ended {:.1f} s ago ({})", end.id,
                                            static_cast<double>(end.ago_ms) / 1000, end.reason)};
}

Result<void> check_one_tenant(const std::string& name, const RequestRows& rows) {
  std::map<std::string, std::string> first_of;  // by tenant
  for (const wire::RequestView& view : rows.requests) first_of.emplace(tenant_of(view), view.id);
  if (first_of.size() <= 1) return {};
  return fail(
      Errc::BadRequest,
      fmt::format("'{}' names requests of {} tenants, such as {} and {}; write TENANT/ID", name,
                  first_of.size(), first_of.begin()->second, first_of.rbegin()->second));
}

/// Several clients may send the same X-Request-Id. All choices of one answer have the answer's.
Result<void> check_one_answer(const std::string& name, const RequestRows& rows) {
  std::set<std::string> named;  // answers, or requests without one
  for (const wire::RequestView& view : rows.requests)
    if (view.x_request_id == name) named.insert(view.answer.value_or(view.id));
  if (named.size() <= 1) return {};
  return fail(Errc::BadRequest,
              fmt::format("'{}' is the X-Request-Id of {} requests, such as {} and {}; name one of "
                          "them",
                          name, named.size(), *named.begin(), *named.rbegin()));
}

/// Ends the requests. Returns those that the workers found.
Result<std::vector<wire::RequestView>> stop_all(std::vector<wire::RequestView> wanted,
                                                const Dependencies& dependencies) {
  std::map<std::string, std::vector<std::string>> ids_of;  // by worker
  for (const wire::RequestView& view : wanted) ids_of[view.worker].push_back(view.id);
  std::set<std::pair<std::string, std::string>> stopped;
  for (const auto& [worker, ids] : ids_of) {
    for (std::size_t from = 0; from < ids.size(); from += wire::RequestStop::kMaxIds) {
      const std::size_t to = std::min(ids.size(), from + wire::RequestStop::kMaxIds);
      const wire::RequestStop stop{.worker = worker,
                                   .ids = {ids.begin() + static_cast<std::ptrdiff_t>(from),
                                           ids.begin() + static_cast<std::ptrdiff_t>(to)}};
      const Json reply = TRY(dependencies.call(wire::RequestStop::kMethod, stop.to_json()));
      for (auto& id : TRY(client::parse_message<wire::RequestsStopped>(reply)).ids)
        stopped.emplace(worker, std::move(id));
    }
  }
  std::vector<wire::RequestView> found;
  for (const auto& [worker, id] : stopped) found.push_back({.id = id, .worker = worker});
  return found;
}

}  // namespace

Error silent_error(const std::vector<SilentWorker>& silent) {
  return {silent.front().why.code,
          fmt::format("worker {} did not answer ({}); its requests are not known",
                      silent.front().worker, silent.front().why.detail)};
}

Result<RequestRows> read_requests(const ListRequests& query, const Dependencies& dependencies) {
  RequestRows rows;
  std::vector<NextPage> pages;
  for (std::string& worker : TRY(workers_to_ask(query.worker, dependencies, rows.silent)))
    pages.push_back({.list = {.worker = std::move(worker),
                              .tenant = query.tenant,
                              .id = query.id,
                              .limit = kRequestsPerPage}});
  while (!pages.empty()) {
    const std::vector<Result<Json>> replies = read_pages(pages, dependencies);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      const Result<void> read = add_page(replies[i], pages[i], rows);
      if (!read && !is_of_worker(read.error().code)) return std::unexpected(read.error());
      if (!read) rows.silent.push_back({pages[i].list.worker, read.error()});
    }
    std::erase_if(pages, [](const NextPage& page) { return page.is_last; });
  }
  std::ranges::sort(rows.requests, {},
                    [](const wire::RequestView& view) { return std::tie(view.id, view.worker); });
  std::ranges::sort(rows.ended, {}, &wire::EndedRequest::ago_ms);
  return rows;
}

/// The worker of an HTTP client lists a request that was moved to another worker without a lease,
/// and the other one without the answer.
std::vector<wire::RequestView> joined_moved(std::vector<wire::RequestView> views) {
  std::vector<wire::RequestView> joined;
  for (wire::RequestView& view : views) {
    const bool is_moved = !joined.empty() && joined.back().id == view.id &&
                          joined.back().lease.has_value() != view.lease.has_value();
    if (!is_moved) {
      joined.push_back(std::move(view));
      continue;
    }
    if (view.lease) std::swap(view, joined.back());
    wire::RequestView& runs = joined.back();
    if (!runs.key) runs.key = view.key;
    if (!runs.answer) runs.answer = view.answer;
  }
  return joined;
}

Result<NamedRequests> read_named_requests(ListRequests query, std::span<const std::string> names,
                                          const Dependencies& dependencies) {
  NamedRequests named;
  if (names.empty()) {
    named.rows = TRY(read_requests(query, dependencies));
    named.rows.requests = joined_moved(std::move(named.rows.requests));
    return named;
  }
  std::set<std::pair<std::string, std::string>> known;  // ids, with their workers
  for (const std::string& name : names) {
    query.id = name;
    RequestRows rows = TRY(read_requests(query, dependencies));
    if (rows.requests.empty() && !named.problem) named.problem = unknown_error(name, rows);
    named.rows.silent = std::move(rows.silent);
    for (wire::RequestView& view : rows.requests)
      if (known.emplace(view.id, view.worker).second)
        named.rows.requests.push_back(std::move(view));
  }
  named.rows.requests = joined_moved(std::move(named.rows.requests));
  return named;
}

Result<CancelledRequests> cancel_requests(const CancelRequests& query,
                                          const Dependencies& dependencies) {
  CancelledRequests cancelled;
  std::vector<wire::RequestView> wanted;
  ListRequests list{.tenant = query.tenant, .worker = query.worker};
  if (query.all) {
    RequestRows rows = TRY(read_requests(list, dependencies));
    if (!rows.silent.empty()) cancelled.problem = silent_error(rows.silent);
    if (rows.requests.empty() && !cancelled.problem) {
      cancelled.problem =
          Error{Errc::UnknownRequest, fmt::format("tenant {} has no request", query.tenant->value)};
    }
    wanted = std::move(rows.requests);
  }
  for (const std::string& name : query.ids) {
    list.id = name;
    RequestRows rows = TRY(read_requests(list, dependencies));
    TRY(check_one_tenant(name, rows));
    TRY(check_one_answer(name, rows));
    if (rows.requests.empty() && !cancelled.problem) cancelled.problem = unknown_error(name, rows);
    std::ranges::move(rows.requests, std::back_inserter(wanted));
  }
  cancelled.requests = TRY(stop_all(std::move(wanted), dependencies));
  return cancelled;
}

cli::Table requests_table(const std::vector<wire::RequestView>& requests) {
  cli::Table table{.columns = {{"REQUEST"},
                               {"WORKER"},
                               {"STATE"},
                               {"PROMPT", true},
                               {"EMITTED", true},
                               {"MAX", true},
                               {"AGE", true},
                               {"LEASE", false, true},
                               {"KEY", false, true},
                               {"ANSWER", false, true},
                               {"X-REQUEST-ID", false, true}}};
  const auto count = [](std::uint32_t tokens) {
    return tokens == 0 ? std::string("-") : std::to_string(tokens);
  };
  const auto state = [](const wire::RequestView& view) {
    return std::string(name(view.state)) + (view.embeds ? ", embedding" : "") +
           (view.detached ? ", detached" : "");
  };
  for (const wire::RequestView& view : requests) {
    table.rows.push_back(
        {printable(view.id), view.worker, state(view), count(view.prompt_tokens),
         std::to_string(view.emitted_tokens), count(view.max_emitted_tokens),
         cli::nanoseconds_text(view.age_ms * 1'000'000), view.lease ? to_string(*view.lease) : "-",
         view.key ? view.key->value : "-", cli::or_dash(printable(view.answer.value_or(""))),
         cli::or_dash(printable(view.x_request_id.value_or("")))});
  }
  return table;
}

Json requests_json(const RequestRows& rows) {
  Json items = Json::array();
  for (const wire::RequestView& view : rows.requests) {
    Json item = view.to_json();
    item["tenant"] = tenant_of(view);
    items.push_back(std::move(item));
  }
  Json silent = Json::array();
  for (const SilentWorker& each : rows.silent) {
    silent.push_back(
        {{"worker", each.worker}, {"code", name(each.why.code)}, {"detail", each.why.detail}});
  }
  return {{"items", std::move(items)}, {"unreachable", std::move(silent)}};
}

std::string requests_notes(const RequestRows& rows) {
  std::string notes;
  for (const SilentWorker& each : rows.silent) {
    notes += fmt::format("worker {} is unreachable, its requests are not shown: {}: {}\n",
                         each.worker, name(each.why.code), printable(each.why.detail));
  }
  return notes;
}

cli::Table cancelled_table(const std::vector<wire::RequestView>& requests) {
  cli::Table table{.columns = {{"CANCELLED"}, {"WORKER"}}};
  for (const wire::RequestView& view : requests)
    table.rows.push_back({printable(view.id), view.worker});
  return table;
}

Json cancelled_json(const std::vector<wire::RequestView>& requests) {
  Json items = Json::array();
  for (const wire::RequestView& view : requests)
    items.push_back({{"id", view.id}, {"worker", view.worker}});
  return {{"cancelled", std::move(items)}};
}

}  // namespace leasehold::brokerctl

#include "broker/server/lists.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "broker/server/operators.hpp"
#include "broker/server/page.hpp"
#include "broker/server/views.hpp"

namespace leasehold {
namespace {

using control::Json;

constexpr std::uint64_t kMaxItems = Page::kMaxItems;
constexpr std::uint64_t kFirstPower = 10;  // a microsecond
constexpr std::uint64_t kLastPower = 36;   // 69 s

template <class View>
Json items(const std::vector<View>& views) {
  Json list = Json::array();
  for (const View& view : views) list.push_back(view.to_json());
  return Json{{"items", std::move(list)}};
}

/// Fills a page; `views` may hold more items than the page takes.
template <class View>
Json page_of(const std::vector<View>& views, std::uint64_t limit) {
  Page page(limit);
  for (const View& view : views) {
    if (!page.add(view.to_json())) break;
  }
  const bool more = page.size() < views.size();
  return Json{{"items", std::move(page).take()}, {"more", more}};
}

/// A worker that runs as the broker's user or as root can open the lease table for writing.
std::string isolation(const State& state) {
  bool any = false;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state > WorkerState::Ready) continue;
    if (is_operator(worker.uid)) return "same-user";
    any = true;
  }
  return any ? "separate-users" : "no-worker";
}

Json status(const ListSources& sources) {
  wire::StatusView view = status_view(sources.state, sources.now);
  view.isolation = isolation(sources.state);
  view.spill_capacity_bytes = sources.spill.capacity_bytes();
  view.spill_lent_bytes = sources.spill.lent_bytes();
  view.journal_faults = sources.journal_faults;
  view.uptime_ms = (sources.now - sources.started) / std::chrono::milliseconds(1);
  return view.to_json();
}

// Each list requests one view beyond the limit; its presence means that another page follows.

Result<Json> tenant_list(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::TenantList::from_json(params));
  return page_of(tenant_views(sources.state, request.after, request.limit + 1, sources.now),
                 request.limit);
}

Result<Json> key_list(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::KeyList::from_json(params));
  return page_of(key_views(sources.state, request.after, request.limit + 1), request.limit);
}

Result<Json> check_key(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::KeyCheck::from_json(params));
  const journal::ApiKeyRow* key = TRY(sources.state.api_keys.verify(request.api_key));
  return wire::KeyView{.key = key->id, .tenant = key->tenant}.to_json();
}

Result<Json> extent_list(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::ExtentList::from_json(params));
  auto views = extent_views(sources.state, request.after, request.limit + 1);
  for (auto& view : views) view.inode = sources.memory.inode(view.extent);
  Json reply = page_of(views, request.limit);
  reply["total"] = sources.state.extents.records().size();
  return reply;
}

bool follows(const wire::QuarantineView& view, const wire::QuarantineList& request) {
  if (request.after_region) return view.region && *view.region > *request.after_region;
  return !request.after_extent || view.region || *view.extent > *request.after_extent;
}

Result<Json> list_quarantine(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::QuarantineList::from_json(params));
  auto views = quarantine_views(sources.state);
  std::erase_if(views, [&](const wire::QuarantineView& view) { return !follows(view, request); });
  return page_of(views, request.limit);
}

Json workers(const ListSources& sources) {
  auto views = worker_views(sources.state);
  for (auto& view : views) view.revocations = sources.table.revocations(view.id);
  return items(views);
}

Result<std::uint64_t> number(const Json& params, const char* field, std::uint64_t otherwise,
                             std::uint64_t most) {
  const auto found = params.find(field);
  if (found == params.end()) return otherwise;
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > most) {
    return fail(Errc::BadRequest, fmt::format("{} must be an integer from 0 to {}", field, most));
  }
  return found->get<std::uint64_t>();
}

Result<Json> event_list(const ListSources& sources, const Json& params) {
  const std::uint64_t after = TRY(number(params, "after", 0, ~std::uint64_t{0}));
  const std::uint64_t limit = TRY(number(params, "limit", kMaxItems, kMaxItems));
  Page page(limit);
  for (const NumberedEvent& event : sources.log.after(after, limit)) {
    Json item = events::to_json(event.stamped.event, event.stamped.at);
    item["sequence"] = event.sequence;
    if (!page.add(std::move(item))) break;
  }
  return Json{{"items", std::move(page).take()}, {"newest", sources.log.newest()}};
}

/// Ordered by slot. A lease never changes its slot, so a caller that reads page after page sees
/// every lease that stays open.
Result<Json> lease_list(const ListSources& sources, const Json& params) {
  const bool continues = params.contains("after");
  const std::uint64_t after = TRY(number(params, "after", 0, ~std::uint32_t{0}));
  const std::uint64_t limit = TRY(number(params, "limit", kMaxItems, kMaxItems));
  const LeasePage found = lease_page(sources.state, continues ? after + 1 : 0, limit);
  Json reply = page_of(found.items, limit);
  if (found.more) reply["more"] = true;
  reply["total"] = found.total;
  return reply;
}

/// Counts below 2^power ns, which are exact, for each of the powers.
Json histogram_of(const LatencyHistogram& histogram) {
  Json counts = Json::array();
  for (std::uint64_t power = kFirstPower; power <= kLastPower; ++power)
    counts.push_back(histogram.count_below(power));
  return Json{{"below", std::move(counts)},
              {"count", histogram.count()},
              {"sum_ns", histogram.sum().count()}};
}

Json metrics(const ListSources& sources) {
  Json revocations = Json::object();
  for (int i = 1; i < kRevokeReasonCount; ++i)
    revocations[std::string(name(static_cast<RevokeReason>(i)))] =
        sources.log.revocations().at(static_cast<std::size_t>(i));
  Json clocks = Json::object();
  for (std::size_t i = 0; i < kRevokeClockCount; ++i)
    clocks[std::string(kRevokeClockNames.at(i))] =
        histogram_of(sources.state.clocks[i].since_start());
  Json rebinds = Json::object();
  for (std::size_t i = 0; i < kRebindKindCount; ++i)
    rebinds[std::string(rebind_kind_name(i))] =
        histogram_of(sources.state.rebinds.at(i).since_start());
  return Json{{"first_power", kFirstPower},
              {"revocations", std::move(revocations)},
              {"clocks", std::move(clocks)},
              {"rebinds", std::move(rebinds)}};
}

Result<Json> list_operator_actions(const ListSources& sources, const Json& params) {
  const std::uint64_t limit = TRY(number(params, "limit", kMaxItems, kMaxItems));
  return items(TRY(sources.journal.newest_operator_actions(limit)));
}

Result<Json> list_audit_records(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::AuditList::from_json(params));
  return TRY(sources.journal.audit_page(request)).to_json();
}

Result<control::Payload> open_extent(const ListSources& sources, const Json& params) {
  if (!sources.allow_memory_check) {
    return fail(Errc::PermissionDenied,
                "memory checks are disabled; start the broker with --allow-memory-check");
  }
  const wire::ExtentOpen request = TRY(wire::ExtentOpen::from_json(params));
  spdlog::warn("memory opened for a check extent={}", request.extent.value);
  control::Payload payload{.body = wire::Empty{}.to_json()};
  payload.fds.push_back(TRY(sources.memory.open_extent(request.extent)));
  return payload;
}

Result<Json> list(const ListSources& sources, const std::string& method, const Json& params) {
  if (method == "status") return status(sources);
  if (method == "tenant.list") return tenant_list(sources, params);
  if (method == wire::KeyList::kMethod) return key_list(sources, params);
  if (method == wire::KeyCheck::kMethod) return check_key(sources, params);
  if (method == "lease.list") return lease_list(sources, params);
  if (method == "extent.list") return extent_list(sources, params);
  if (method == "quarantine.list") return list_quarantine(sources, params);
  if (method == "worker.list") return workers(sources);
  if (method == "event.list") return event_list(sources, params);
  if (method == "metrics.read") return metrics(sources);
  if (method == "step.list") return items(step_views(sources.state));
  if (method == "operator_action.list") return list_operator_actions(sources, params);
  if (method == wire::AuditList::kMethod) return list_audit_records(sources, params);
  return fail(Errc::UnknownMethod, fmt::format("the broker has no query {}", method));
}

}  // namespace

Result<control::Payload> answer_query(const ListSources& sources, const std::string& method,
                                      const Json& params) {
  if (method == wire::ExtentOpen::kMethod) return open_extent(sources, params);
  return control::Payload{.body = TRY(list(sources, method, params))};
}

}  // namespace leasehold

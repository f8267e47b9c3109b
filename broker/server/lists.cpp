#include "broker/server/lists.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "broker/server/connections/operators.hpp"
#include "broker/server/page.hpp"
#include "broker/server/views/adapter_views.hpp"
#include "broker/server/views/tenant_views.hpp"
#include "broker/server/views/views.hpp"
#include "common/log.hpp"
#include "common/utf8.hpp"

namespace leasehold {
namespace {

using control::Json;

constexpr std::uint64_t kMaxItems = Page::kMaxItems;
constexpr std::uint64_t kFirstPower = 10;  // 2^10 ns: a microsecond
constexpr std::uint64_t kLastPower = 36;   // 2^36 ns: 69 s

template <class View>
Json items(const std::vector<View>& views) {
  Json list = Json::array();
  for (const View& view : views) list.push_back(view.to_json());
  return Json{{"items", std::move(list)}};
}

/// Fills one page with items. `views` may have more items than fit.
template <class View>
Json page_of(const std::vector<View>& views, std::uint64_t limit) {
  Page page(limit);
  for (const View& view : views) {
    if (!page.add(view.to_json())) break;
  }
  const bool more = page.size() < views.size();
  return Json{{"items", std::move(page).take()}, {"more", more}};
}

/// Says if workers are isolated: a worker that runs as the broker's user or as root can open the
/// lease table for writing.
std::string isolation(const State& state) {
  bool any = false;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state > WorkerState::Ready) continue;
    if (is_operator(worker.uid)) return "same-user";
    any = true;
  }
  return any ? "separate-users" : "no-worker";
}

Result<Json> query_status(const ListSources& sources, const Json&) {
  const TimePoint now = sources.clock.now();
  wire::StatusView view = status_view(sources.state, now);
  view.isolation = isolation(sources.state);
  view.spill_capacity_bytes = sources.spill.capacity_bytes();
  view.spill_lent_bytes = sources.spill.lent_bytes();
  view.journal_faults = sources.effects.journal_faults();
  view.log_lines_dropped = log_lines_dropped();
  view.uptime_ms = (now - sources.started) / std::chrono::milliseconds(1);
  Json reply = view.to_json();
  reply.update(wire::HostMemoryInUse{.touched_bytes = sources.memory.touched_bytes()}.to_json());
  reply.update(wire::StatusOfAudit{.audit = sources.journal.audit_state()}.to_json());
  return reply;
}

// Each list requests one view beyond the limit, whose presence means that another page follows.

Result<Json> query_tenants(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::TenantList::from_json(params));
  const TimePoint now = sources.clock.now();
  auto views = request.tenant ? view_of_tenant(sources.state, *request.tenant, now)
                              : tenant_views(sources.state, request.after, request.limit + 1, now);
  for (wire::TenantView& view : views)
    view.leases = sources.journal.lease_counts(view.policy.tenant);
  return page_of(views, request.tenant ? 1 : request.limit);
}

Result<Json> query_keys(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::KeyList::from_json(params));
  if (request.tenant) {
    return page_of(keys_of_tenant(sources.state, *request.tenant, sources.clock.now()),
                   wire::kMaxKeysPerTenant);
  }
  return page_of(key_views(sources.state, request.after, request.limit + 1, sources.clock.now()),
                 request.limit);
}

Result<Json> query_key(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::KeyCheck::from_json(params));
  const State& state = sources.state;
  const std::int64_t unix_ms = state.wall.unix_ms(sources.clock.now());
  const journal::ApiKeyRow* key = TRY(state.api_keys.verify(request.api_key, unix_ms));
  const Tenant* tenant = state.tenants.find(key->tenant);
  return wire::KeyOwner{.key = key->id,
                        .tenant = key->tenant,
                        .tenant_admitted_unix_ms = tenant == nullptr ? 0 : tenant->admitted_unix_ms}
      .to_json();
}

Result<Json> query_removed_tenants(const ListSources& sources, const Json& params) {
  auto gone = TRY(wire::TenantCheck::from_json(params));
  std::erase_if(gone.tenants, [&](const wire::TenantAdmission& each) {
    const Tenant* tenant = sources.state.tenants.find(each.tenant);
    return tenant != nullptr && tenant->admitted_unix_ms == each.admitted_unix_ms;
  });
  return gone.to_json();
}

Result<Json> query_adapters(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::AdapterList::from_json(params));
  return page_of(adapter_views(sources.state, request), request.limit);
}

Result<Json> query_adapter(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::AdapterResolve::from_json(params));
  const journal::AdapterRow* adapter =
      sources.state.adapters.find_for(request.tenant, request.adapter);
  if (adapter == nullptr) return std::unexpected(unknown_adapter(request.adapter));
  return resolved(*adapter).to_json();
}

Result<Json> query_visible_adapters(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::AdapterVisible::from_json(params));
  return visible_adapters(sources.state, request.tenant).to_json();
}

Result<Json> query_extents(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::ExtentList::from_json(params));
  auto views = extent_views(sources.state, request.after, request.limit + 1);
  for (auto& view : views) view.inode = sources.memory.identity(view.extent).inode;
  Json reply = page_of(views, request.limit);
  reply["total"] = sources.state.extents.records().size();
  return reply;
}

bool follows(const wire::QuarantineView& view, const wire::QuarantineList& request) {
  if (request.after_region) return view.region && *view.region > *request.after_region;
  return !request.after_extent || view.region || *view.extent > *request.after_extent;
}

Result<Json> query_quarantine(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::QuarantineList::from_json(params));
  auto views = quarantine_views(sources.state);
  std::erase_if(views, [&](const wire::QuarantineView& view) { return !follows(view, request); });
  return page_of(views, request.limit);
}

Result<Json> query_workers(const ListSources& sources, const Json&) {
  auto views = worker_views(sources.state, sources.clock.now());
  for (auto& view : views) view.revocations = sources.table.revocations(view.id);
  return items(views);
}

Result<std::uint64_t> number(const Json& params, const char* field, std::uint64_t otherwise,
                             std::uint64_t most) {
  const auto found = params.find(field);
  if (found == params.end()) return otherwise;
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > most) {
    const std::string given = found->dump(-1, ' ', false, Json::error_handler_t::replace);
    return fail(Errc::BadRequest, fmt::format("{} must be an integer from 0 to {}, not {}", field,
                                              most, printable_excerpt(given)));
  }
  return found->get<std::uint64_t>();
}

Result<Json> query_events(const ListSources& sources, const Json& params) {
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
Result<Json> query_leases(const ListSources& sources, const Json& params) {
  const bool continues = params.contains("after");
  const std::uint64_t after = TRY(number(params, "after", 0, ~std::uint32_t{0}));
  const std::uint64_t limit = TRY(number(params, "limit", kMaxItems, kMaxItems));
  const LeasePage found = lease_page(sources.state, continues ? after + 1 : 0, limit);
  Json reply = page_of(found.items, limit);
  if (found.more) reply["more"] = true;
  reply["total"] = found.total;
  return reply;
}

/// The exact numbers of values below 2^power ns, for each power from kFirstPower to kLastPower.
Json histogram_of(const LatencyHistogram& histogram) {
  Json counts = Json::array();
  for (std::uint64_t power = kFirstPower; power <= kLastPower; ++power)
    counts.push_back(histogram.count_below(power));
  return Json{{"below", std::move(counts)},
              {"count", histogram.count()},
              {"sum_ns", histogram.sum().count()}};
}

Json adapter_counts(const ListSources& sources) {
  Json refusals = Json::object();
  for (const auto& [code, count] : sources.state.adapters.refusals())
    refusals[std::string(name(code))] = count;
  return Json{{"loads", sources.log.adapter_loads()},
              {"evictions", sources.log.adapter_evictions()},
              {"refusals", std::move(refusals)}};
}

Result<Json> query_metrics(const ListSources& sources, const Json&) {
  Json revocations = Json::object();
  for (int i = 1; i < kRevokeReasonCount; ++i) {
    const auto reason = static_cast<RevokeReason>(i);
    if (is_known(reason))
      revocations[std::string(name(reason))] =
          sources.log.revocations().at(static_cast<std::size_t>(i));
  }
  Json clocks = Json::object();
  for (std::size_t i = 0; i < kRevokeClockCount; ++i)
    clocks[std::string(kRevokeClockNames.at(i))] =
        histogram_of(sources.state.counts.clocks[i].since_start());
  Json rebinds = Json::object();
  for (std::size_t i = 0; i < sources.state.counts.rebinds.size(); ++i)
    rebinds[std::string(wire::name(static_cast<wire::RebindMode>(i)))] =
        histogram_of(sources.state.counts.rebinds.at(i).since_start());
  return Json{{"first_power", kFirstPower},
              {"revocations", std::move(revocations)},
              {"clocks", std::move(clocks)},
              {"rebinds", std::move(rebinds)},
              {"adapters", adapter_counts(sources)}};
}

Result<Json> query_steps(const ListSources& sources, const Json&) {
  return items(step_views(sources.state));
}

Result<Json> query_operator_actions(const ListSources& sources, const Json& params) {
  const std::uint64_t limit = TRY(number(params, "limit", kMaxItems, kMaxItems));
  return items(TRY(sources.journal.newest_operator_actions(limit)));
}

Result<Json> query_audit_records(const ListSources& sources, const Json& params) {
  const auto request = TRY(wire::AuditList::from_json(params));
  return TRY(sources.journal.audit_page(request)).to_json();
}

/// Answers after a sync of the journal, which another thread waits for.
void query_audit_head(const ListSources& sources, const Json& params, control::Responder respond) {
  const auto query = wire::AuditHeadQuery::from_json(params);
  if (!query) return respond(std::unexpected(query.error()));
  sources.journal.audit_head(*query, [&io = sources.io, respond = std::move(respond)](
                                         Result<wire::DsseEnvelope> head) mutable {
    boost::asio::post(io, [head = std::move(head), respond = std::move(respond)]() mutable {
      if (!head) return respond(std::unexpected(head.error()));
      respond(control::Payload{.body = head->to_json()});
    });
  });
}

Result<Json> query_audit_keys(const ListSources& sources, const Json&) {
  return TRY(sources.journal.audit_keys()).to_json();
}

Result<Json> rotate_audit_key(const ListSources& sources, const Json& params) {
  const auto rotate = TRY(wire::AuditKeyRotate::from_json(params));
  return TRY(sources.journal.rotate_audit_key(rotate)).to_json();
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

control::Payload payload_of(Json body) {
  return {.body = std::move(body)};
}

control::Payload payload_of(control::Payload payload) {
  return payload;
}

/// Answers a query at once with what `Read` returns: a body, or a payload with a descriptor.
template <auto Read>
void answer(const ListSources& sources, const Json& params, control::Responder respond) {
  auto read = Read(sources, params);
  if (!read) return respond(std::unexpected(std::move(read).error()));
  respond(payload_of(*std::move(read)));
}

constexpr Query kQueries[] = {
    {"status", Role::Observer, answer<query_status>, true},
    {"tenant.list", Role::Observer, answer<query_tenants>},
    {"lease.list", Role::Observer, answer<query_leases>},
    {"extent.list", Role::Observer, answer<query_extents>},
    {"quarantine.list", Role::Observer, answer<query_quarantine>},
    {"worker.list", Role::Observer, answer<query_workers>},
    {"metrics.read", Role::Observer, answer<query_metrics>},
    {"event.list", Role::Observer, answer<query_events>},
    {"step.list", Role::Observer, answer<query_steps>},
    {"adapter.list", Role::Observer, answer<query_adapters>},
    {"adapter.resolve", Role::Worker, answer<query_adapter>},
    {"adapter.visible", Role::Worker, answer<query_visible_adapters>},
    {"key.list", Role::Operator, answer<query_keys>},
    {"key.check", Role::Worker, answer<query_key>},
    {"tenant.check", Role::Worker, answer<query_removed_tenants>},
    {"operator_action.list", Role::Operator, answer<query_operator_actions>},
    {"audit.list", Role::Operator, answer<query_audit_records>},
    {wire::AuditHeadQuery::kMethod, Role::Operator, query_audit_head},
    {wire::AuditKeyQuery::kMethod, Role::Operator, answer<query_audit_keys>},
    {wire::AuditKeyRotate::kMethod, Role::Operator, answer<rotate_audit_key>},
    {"extent.open", Role::Operator, answer<open_extent>},
};

}  // namespace

std::span<const Query> queries() {
  return kQueries;
}

}  // namespace leasehold

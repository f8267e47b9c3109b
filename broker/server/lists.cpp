#include "broker/server/lists.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "broker/views.hpp"

namespace leasehold {
namespace {

using control::Json;

constexpr std::uint64_t kMaxItems = 1000;       ///< In one answer, so that it fits into a line.
constexpr std::size_t kMaxItemBytes = 1 << 19;  ///< Of events, which may be long.

template <class View>
Json items(const std::vector<View>& views) {
  Json list = Json::array();
  for (const View& view : views) list.push_back(view.to_json());
  return Json{{"items", std::move(list)}};
}

/// A worker of the broker's own user, or of root, can open the lease table for writing; say so.
std::string isolation(const State& state) {
  bool any = false;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state > WorkerState::Ready) continue;
    if (worker.uid == ::geteuid() || worker.uid == 0) return "same-user";
    any = true;
  }
  return any ? "separate-users" : "no-worker";
}

Json status(const ListSources& sources) {
  wire::StatusView view = status_view(sources.state, sources.now);
  view.isolation = isolation(sources.state);
  view.uptime_ms = (sources.now - sources.started) / std::chrono::milliseconds(1);
  return view.to_json();
}

Json extents(const ListSources& sources) {
  auto views = extent_views(sources.state);
  for (auto& view : views) view.inode = sources.memory.inode(view.extent);
  return items(views);
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
    return fail(Errc::BadRequest, fmt::format("{} must be a number up to {}", field, most));
  }
  return found->get<std::uint64_t>();
}

Result<Json> event_list(const ListSources& sources, const Json& params) {
  const std::uint64_t after = TRY(number(params, "after", 0, ~std::uint64_t{0}));
  const std::uint64_t limit = TRY(number(params, "limit", kMaxItems, kMaxItems));
  Json list = Json::array();
  std::size_t size_bytes = 0;
  for (const NumberedEvent& event : sources.log.after(after, limit)) {
    Json item = events::to_json(event.stamped.event, event.stamped.at);
    item["sequence"] = event.sequence;
    size_bytes += item.dump().size();
    if (size_bytes > kMaxItemBytes) break;  // the rest comes with the next page
    list.push_back(std::move(item));
  }
  return Json{{"items", std::move(list)},
              {"oldest", sources.log.oldest()},
              {"newest", sources.log.newest()}};
}

/// In the order of slots. A lease never changes its slot, so whoever asks page after page meets
/// each one that stays open meanwhile.
Result<Json> lease_list(const ListSources& sources, const Json& params) {
  const bool continues = params.contains("after");
  const std::uint64_t after = TRY(number(params, "after", 0, ~std::uint32_t{0}));
  const std::uint64_t limit = TRY(number(params, "limit", kMaxItems, kMaxItems));
  const LeasePage page = lease_page(sources.state, continues ? after + 1 : 0, limit);
  Json reply = items(page.items);
  reply["more"] = page.more;
  return reply;
}

Result<Json> audit_list(const ListSources& sources, const Json& params) {
  const std::uint64_t limit = TRY(number(params, "limit", kMaxItems, kMaxItems));
  return items(TRY(sources.journal.newest_deeds(limit)));
}

Result<control::Payload> open_extent(const ListSources& sources, const Json& params) {
  if (!sources.allow_memory_audit) {
    return fail(Errc::PermissionDenied,
                "memory is shown only by a broker that runs with --allow-memory-audit");
  }
  const wire::ExtentOpen ask = TRY(wire::ExtentOpen::from_json(params));
  spdlog::warn("memory opened for audit extent={}", ask.extent.value);
  control::Payload payload{.body = wire::Empty{}.to_json()};
  payload.fds.push_back(TRY(sources.memory.open_extent(ask.extent)));
  return payload;
}

Result<Json> list(const ListSources& sources, const std::string& method, const Json& params) {
  if (method == "status") return status(sources);
  if (method == "tenant.list") return items(tenant_views(sources.state));
  if (method == "lease.list") return lease_list(sources, params);
  if (method == "extent.list") return extents(sources);
  if (method == "fence.list") return items(fence_views(sources.state));
  if (method == "worker.list") return workers(sources);
  if (method == "event.list") return event_list(sources, params);
  if (method == "audit.list") return audit_list(sources, params);
  return fail(Errc::UnknownMethod, fmt::format("the broker has no list {}", method));
}

}  // namespace

Result<control::Payload> answer_look(const ListSources& sources, const std::string& method,
                                     const Json& params) {
  if (method == wire::ExtentOpen::kMethod) return open_extent(sources, params);
  return control::Payload{.body = TRY(list(sources, method, params))};
}

}  // namespace leasehold

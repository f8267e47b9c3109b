#include "worker/serve/request_operations.hpp"

#include <algorithm>
#include <map>

#include "worker/kv/request_ids.hpp"

namespace leasehold {
namespace {

using Entry = const std::pair<const RequestId, ClientRequest>*;

constexpr std::size_t kMaxEndedShown = 16;

std::int64_t ms_between(TimePoint from, TimePoint to) {
  return std::max<std::int64_t>(0, (to - from) / std::chrono::milliseconds(1));
}

wire::RequestState state_of(const ClientRequest& request, bool runs) {
  using enum wire::RequestState;
  if (request.is_cancelled || request.stopped_by || request.unread_end) return Ending;
  if (!request.is_parsed()) return Parsing;
  if (request.progress.is_generating) return Decode;
  if (runs) return Prefill;
  if (!request.progress.preempted) return Waiting;
  return request.progress.preempted->swapped_blocks > 0 ? Swapped : Preempted;
}

wire::RequestView view_of(const RequestId& id, const ClientRequest& request, bool runs,
                          TimePoint now) {
  return {.id = id.value,
          .state = state_of(request, runs),
          .lease = request.lease,
          .prompt_tokens = request.timing.prompt_tokens,
          .emitted_tokens = request.progress.emitted_tokens,
          .max_emitted_tokens = request.progress.shortened_to > 0 ? request.progress.shortened_to
                                                                  : request.max_emitted_tokens,
          .age_ms = ms_between(request.timing.submitted_at, now),
          .embeds = request.progress.embeds,
          .detached = request.is_parsed() && request.is_resumable && request.connection == 0,
          .x_request_id = request.labels.x_request_id.empty()
                              ? std::nullopt
                              : std::optional(request.labels.x_request_id)};
}

}  // namespace

bool is_named(const RequestId& engine_request_id, std::string_view text) {
  if (engine_request_id.value == text) return true;
  const std::string own = to_client_request_id(engine_request_id).value;
  return own == text || own == wire::without_answer_prefix(text);
}

void keep_listed(const wire::RequestList& list, std::vector<wire::RequestView>& views) {
  std::erase_if(views, [&](const wire::RequestView& view) {
    const RequestId id{view.id};
    const bool is_after = !list.after || view.id > *list.after;
    const bool is_of_tenant = !list.tenant || tenant_of(id) == *list.tenant;
    const bool is_meant = !list.id || is_named(id, *list.id) || view.answer == list.id ||
                          view.x_request_id == list.id;
    return !is_after || !is_of_tenant || !is_meant;
  });
}

wire::RequestPage page_of(const wire::RequestList& list, std::vector<wire::RequestView> served,
                          std::vector<wire::RequestView> answers) {
  std::map<std::string, wire::RequestView> by_id;
  for (wire::RequestView& view : answers) by_id[view.id] = std::move(view);
  for (wire::RequestView& view : served) {
    wire::RequestView& row = by_id[view.id];
    view.key = row.key;
    view.answer = row.answer;
    row = std::move(view);
  }
  wire::RequestPage page{.more = by_id.size() > list.limit};
  for (auto& [id, view] : by_id) {
    if (page.items.size() == list.limit) break;
    page.items.push_back(std::move(view));
  }
  return page;
}

std::vector<wire::RequestView> RequestOperations::views(
    const wire::RequestList& list, const std::unordered_set<RequestId>& named) const {
  const auto is_listed = [&](const RequestId& id, const ClientRequest& request) {
    if (list.after && id.value <= *list.after) return false;
    if (list.tenant && tenant_of(id) != *list.tenant) return false;
    return !list.id || named.contains(id) || is_named(id, *list.id) ||
           request.labels.x_request_id == *list.id;
  };
  std::vector<Entry> listed;
  for (const auto& entry : requests_->all())
    if (is_listed(entry.first, entry.second)) listed.push_back(&entry);
  const auto by_id = [](Entry entry) -> const RequestId& { return entry->first; };
  const std::size_t shown = std::min<std::size_t>(listed.size(), list.limit + std::size_t{1});
  std::ranges::partial_sort(listed, listed.begin() + static_cast<std::ptrdiff_t>(shown), {}, by_id);
  listed.resize(shown);

  std::unordered_set<RequestId> running;
  deps_.running_requests->for_each(
      [&](const RunningRequest& each) { running.insert(each.engine_request_id); });
  std::vector<wire::RequestView> views;
  const TimePoint now = deps_.clock->now();
  for (const Entry entry : listed)
    views.push_back(view_of(entry->first, entry->second, running.contains(entry->first), now));
  return views;
}

std::vector<wire::EndedRequest> RequestOperations::ended(const wire::RequestList& list) const {
  std::vector<wire::EndedRequest> ended;
  const auto& ends = requests_->recent_ends().all();
  for (auto end = ends.rbegin(); end != ends.rend() && ended.size() < kMaxEndedShown; ++end) {
    const RequestId& id = end->engine_request_id;
    const bool is_of_tenant = !list.tenant || tenant_of(id) == *list.tenant;
    if (!list.id || !is_of_tenant || !is_named(id, *list.id)) continue;
    ended.push_back(
        {.id = id.value, .reason = end->reason, .ago_ms = ms_between(end->at, deps_.clock->now())});
  }
  return ended;
}

std::vector<RequestId> RequestOperations::stop(std::span<const RequestId> engine_request_ids,
                                               const Error& why) {
  std::vector<RequestId> stopped;
  for (const RequestId& id : engine_request_ids)
    if (pipeline_->stop(id, why)) stopped.push_back(id);
  return stopped;
}

}  // namespace leasehold

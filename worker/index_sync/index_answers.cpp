#include "worker/index_sync/index_answers.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace leasehold {
namespace {

using Json = nlohmann::json;

/// Expected answers have a nesting depth of 2. Values deeper than this limit are discarded during
/// parsing.
constexpr int kMaxDepth = 4;

Json parse_shallow(std::string_view body) {
  bool is_deep = false;
  Json parsed = Json::parse(
      body,
      [&](int depth, Json::parse_event_t, Json&) {
        is_deep = is_deep || depth > kMaxDepth;
        return depth <= kMaxDepth;
      },
      false);
  return is_deep ? Json(Json::value_t::discarded) : parsed;
}

std::unexpected<Error> malformed(std::string_view what) {
  return fail(Errc::MalformedMessage, fmt::format("the index answered without {}", what));
}

/// Returns null when the answer is not an object with such an array.
const Json* array_of(const Json& answer, const char* field) {
  if (!answer.is_object()) return nullptr;
  const auto found = answer.find(field);
  return found != answer.end() && found->is_array() ? &*found : nullptr;
}

}  // namespace

std::string evict_body(std::span<const RequestId> ids) {
  Json list = Json::array();
  for (const RequestId& id : ids) list.push_back(id.value);
  Json body = Json::object();
  body["request_ids"] = std::move(list);
  return body.dump();
}

Result<EvictAnswer> parse_evict_answer(std::string_view body, std::size_t asked) {
  const Json answer = parse_shallow(body);
  const Json* not_found = array_of(answer, "not_found");
  if (not_found == nullptr || not_found->size() > asked)
    return malformed(fmt::format("a 'not_found' array of at most {} ids", asked));
  const auto removed = answer.find("removed_count");
  if (removed == answer.end() || !removed->is_number_unsigned() ||
      removed->get<std::uint64_t>() > asked)
    return malformed(fmt::format("a 'removed_count' between 0 and {}", asked));
  return EvictAnswer{.removed = removed->get<std::uint64_t>(), .not_found = not_found->size()};
}

Result<std::vector<RequestId>> parse_listed_requests(std::string_view body) {
  const Json answer = parse_shallow(body);
  const Json* list = array_of(answer, "request_ids");
  if (list == nullptr) return malformed("a 'request_ids' array");
  std::vector<RequestId> ids;
  for (const Json& each : *list) {
    if (!each.is_string()) continue;
    if (auto id = RequestId::parse(each.get_ref<const std::string&>())) ids.push_back(*id);
  }
  return ids;
}

std::vector<RequestId> possible_full_ids(const RequestId& listed) {
  std::vector<RequestId> ids{listed};
  for (const char* prefix : {"cmpl-", "chatcmpl-", "batch-"})
    ids.push_back({prefix + listed.value});
  return ids;
}

}  // namespace leasehold

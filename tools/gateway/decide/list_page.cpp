#include "tools/gateway/decide/list_page.hpp"

#include <optional>
#include <tuple>
#include <utility>

#include "ipc/control/transport/excess.hpp"

namespace leasehold::gateway {
namespace {

using Json = nlohmann::json;

constexpr control::Limits kListLimits{.max_depth = 16};

bool has_id(const Json& entry) {
  if (!entry.is_object()) return false;
  const auto id = entry.find("id");
  return id != entry.end() && id->is_string();
}

std::string id_of(const Json& entry) {
  return entry.at("id").get<std::string>();
}

Json id_or_null(const Json& entries, std::size_t at) {
  return entries.empty() ? Json() : entries.at(at).at("id");
}

}  // namespace

Result<HostList> read_host_list(std::string_view body) {
  if (const auto excess = control::exceeded_limit(body, kListLimits))
    return fail(Errc::MalformedMessage, "a host's list has " + *excess);
  Json list = Json::parse(body, nullptr, false);
  const bool has_data = list.is_object() && list.contains("data") && list["data"].is_array();
  if (!has_data)
    return fail(Errc::MalformedMessage, "a host's list is not an object with \"data\"");
  HostList read;
  for (Json& entry : list["data"]) {
    if (!has_id(entry)) return fail(Errc::MalformedMessage, "a host's list has entries without id");
    read.entries.push_back(std::move(entry));
  }
  read.has_more = list.contains("has_more") && list["has_more"] == true;
  return read;
}

ListPosition position_of(const Json& entry, std::size_t host) {
  ListPosition position{.id = id_of(entry), .host = host};
  const auto created = entry.find("created_at");
  if (created != entry.end() && created->is_number_integer())
    position.created_at = created->get<std::int64_t>();
  return position;
}

bool precedes(const ListPosition& one, const ListPosition& other, ListOrder order) {
  switch (order) {
    case ListOrder::NewestFirst:
      return std::tie(other.created_at, one.host) < std::tie(one.created_at, other.host);
    case ListOrder::OldestFirst:
      return std::tie(one.created_at, one.host) < std::tie(other.created_at, other.host);
    case ListOrder::ById:
      return std::tie(one.id, one.host) < std::tie(other.id, other.host);
  }
  std::unreachable();
}

/// Takes the first of the hosts' next entries until the page is full. Each host's own order stays.
Json page_of(std::vector<HostList> lists, std::size_t limit, ListOrder order) {
  std::vector<std::size_t> next(lists.size());
  Json::array_t entries;
  while (entries.size() < limit) {
    std::optional<ListPosition> first;
    for (std::size_t host = 0; host < lists.size(); ++host) {
      if (next[host] == lists[host].entries.size()) continue;
      ListPosition position = position_of(lists[host].entries[next[host]], host);
      if (!first || precedes(position, *first, order)) first = std::move(position);
    }
    if (!first) break;
    entries.push_back(std::move(lists[first->host].entries[next[first->host]++]));
  }
  bool has_more = false;
  for (std::size_t host = 0; host < lists.size(); ++host)
    has_more = has_more || lists[host].has_more || next[host] < lists[host].entries.size();
  Json page{{"object", "list"}, {"has_more", has_more}};
  Json data(std::move(entries));
  page["first_id"] = id_or_null(data, 0);
  page["last_id"] = id_or_null(data, data.empty() ? 0 : data.size() - 1);
  page["data"] = std::move(data);
  return page;
}

}  // namespace leasehold::gateway

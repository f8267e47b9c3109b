/// One page of a list whose entries are on several hosts. Pure.
///
/// Each host has a list of its own. The page is the one that a single list with all entries would
/// have. Entries of the same second are in the order of their hosts, so the hosts must have the
/// same order for every page: that of their addresses.
///
/// A host is not trusted: its list is bounded and checked, and whatever else an entry has is passed
/// on. Source of the form: OpenAI's API, "list" objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace leasehold::gateway {

enum class ListOrder : std::uint8_t { NewestFirst, OldestFirst, ById };

/// Entries of one host, in its order.
struct HostList {
  std::vector<nlohmann::json> entries;
  bool has_more = false;  ///< The host has further ones.
};

/// Reads what a host answers. Errors: MalformedMessage for a text that is not a list of objects
/// with ids, or is nested deeper than 16 levels.
Result<HostList> read_host_list(std::string_view body);

/// Where an entry is in the whole list.
struct ListPosition {
  std::int64_t created_at = 0;  ///< Unix time; 0 if the entry has none.
  std::string id;
  std::size_t host = 0;  ///< In the order of hosts.
};

ListPosition position_of(const nlohmann::json& entry, std::size_t host);

/// True if an entry at `one` comes before an entry of another host at `other`.
bool precedes(const ListPosition& one, const ListPosition& other, ListOrder order);

/// Puts the first `limit` entries of the hosts together; `lists` are in the order of hosts. The
/// answer is a list object with `data`, `has_more`, `first_id` and `last_id`.
nlohmann::json page_of(std::vector<HostList> lists, std::size_t limit, ListOrder order);

}  // namespace leasehold::gateway

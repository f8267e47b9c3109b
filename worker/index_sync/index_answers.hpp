/// What the worker sends to the index and reads from it:
///
///   POST URL/evict {"request_ids":["req-…"]}  ->  {"removed_count":1,"not_found":[],…}
///   GET  URL/requests                         ->  {"request_ids":["req-…"],…}
///
/// An answer may have more fields, which are not read. The index strips the prefixes "cmpl-",
/// "chatcmpl-" and "batch-" of an id, and lists what is left. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold {

struct EvictAnswer {
  std::uint64_t removed = 0;
  std::uint64_t not_found = 0;
  bool operator==(const EvictAnswer&) const = default;
};

std::string evict_body(std::span<const RequestId> ids);

/// Errors: MalformedMessage, also for an answer about more ids than the `asked` ones.
Result<EvictAnswer> parse_evict_answer(std::string_view body, std::size_t asked);

/// Ids that no worker could have sent are left out. Errors: MalformedMessage.
Result<std::vector<RequestId>> parse_listed_requests(std::string_view body);

/// The ids that the index lists as `listed`: itself, and itself behind each prefix.
std::vector<RequestId> ids_listed_as(const RequestId& listed);

}  // namespace leasehold

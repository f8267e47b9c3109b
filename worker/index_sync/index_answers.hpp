/// Builds the requests to the index and parses its answers:
///
///   POST URL/evict {"request_ids":["req-…"]}  ->  {"removed_count":1,"not_found":[],…}
///   GET  URL/requests                         ->  {"request_ids":["req-…"],…}
///
/// An answer may have more fields, which are not read. The index strips the prefixes "cmpl-",
/// "chatcmpl-" and "batch-" of an id, and lists the rest. Pure.
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

/// Errors: MalformedMessage, also for an answer that counts more than `asked` ids.
Result<EvictAnswer> parse_evict_answer(std::string_view body, std::size_t asked);

/// Leaves out ids that no worker could have sent. Errors: MalformedMessage.
Result<std::vector<RequestId>> parse_listed_requests(std::string_view body);

/// The ids that the index may list as `listed`: the same id, and the id with each prefix added.
std::vector<RequestId> possible_full_ids(const RequestId& listed);

}  // namespace leasehold

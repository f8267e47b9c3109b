/// What a gateway adds to the head of a request, so that the answer does not depend on the worker
/// that computes it. Pure.
///
/// | header | value |
/// | --- | --- |
/// | Leasehold-Stream | 50 … 10000: milliseconds between the beats of a continuable stream |
/// | Leasehold-Created | Unix time: the answer's `created`, and the time of the chat template |
/// | Leasehold-Adapters | each choice's adapter (SHA-256) |
/// | Leasehold-Request | the id of the request if its body has none |
/// | Leasehold-Moved-From | the host that may still run the text (host_name.hpp), or `unknown` |
///
/// The values of choices have commas between them; a choice without `emitted` has none.
///
/// A proxy that passes on unknown headers must remove these from its clients' requests.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages/cell/host_name.hpp"
#include "ipc/http/http_errors.hpp"
#include "ipc/http/http_framing.hpp"

namespace leasehold::http {

struct GatewayFields {
  std::optional<std::chrono::milliseconds> beat;  ///< Set: the answer is a continuable stream.
  std::optional<std::int64_t> created_unix_s;
  std::optional<RequestId> request_id;
  std::vector<std::string> adapters;  ///< As in the header.
  std::string moved_from;             ///< Empty: the text begins here.

  /// `is_trusted`: the peer is a trusted proxy. Errors, each with the header as `param`: BadRequest
  /// for a header of a peer that is not trusted, for one that is sent twice, and for another value
  /// than the table's.
  static std::expected<GatewayFields, ApiError> of(const Head& head, bool is_trusted);
};

/// The host of a cell that may still run the text, by the value of Leasehold-Moved-From. Nothing
/// for `unknown`, and for a name that no host of a cell can have.
std::optional<HostName> running_host(std::string_view moved_from);
/// Likewise, of a head. Nothing without the header, and for a peer that is not trusted, which
/// `GatewayFields::of` refuses.
std::optional<HostName> moved_from_in(const Head& head, bool is_trusted);

}  // namespace leasehold::http

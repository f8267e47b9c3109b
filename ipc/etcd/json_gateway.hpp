/// Requests and replies of etcd's JSON gateway as text.
///
/// Keys and values are base64, and 64-bit numbers are texts. Members that are zero, false or empty
/// are missing. Replies are input: their depth and number of values are limited, and each error
/// names the member. Source: etcd 3.4, Documentation/dev-guide/api_grpc_gateway.md; protobuf's JSON
/// mapping. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "ipc/etcd/etcd_types.hpp"

namespace leasehold::etcd {

/// Where a range begins and how much of it one reply has.
struct RangePage {
  KeyRange range;
  Revision revision;      ///< Reads the data of this revision. Zero: the newest.
  std::size_t limit = 0;  ///< Number of entries; zero: all.
};

std::string range_body(const RangePage& page);
std::string transaction_body(const Transaction& transaction);
/// `from`: the revision of the first event.
std::string watch_body(const KeyRange& range, Revision from);
std::string authenticate_body(std::string_view user, std::string_view password);

/// Errors of all readers: MalformedMessage for a text that is not such a reply.
/// Every entry must be within `range`.
Result<RangeReply> read_range_reply(std::string_view json, const KeyRange& range);
/// `transaction` is what was sent: the reply must fit it.
Result<TransactionReply> read_transaction_reply(std::string_view json,
                                                const Transaction& transaction);
/// Returns the token.
Result<std::string> read_authenticate_reply(std::string_view json);

/// The state of the member that answers.
struct MemberStatus {
  std::string version;
  bool has_leader = false;
  std::int64_t size_bytes = 0;  ///< Size of its database file.
  Revision revision;
};
Result<MemberStatus> read_status_reply(std::string_view json);

/// One line of a watch.
struct WatchReply {
  std::vector<WatchEvent> events;
  Revision revision;
  bool is_cancelled = false;
  Revision compacted;  ///< Not zero: events before this revision are gone, so list again.
  std::string reason;  ///< Reason of the cancellation; may be empty.
};
/// Errors: also those of `error_of_reply`, for a line that reports one.
Result<WatchReply> read_watch_reply(std::string_view json);

/// The error in the body of a reply whose HTTP status is not 200. By etcd's code: PermissionDenied
/// (also for an invalid token, see `is_invalid_token`), BadRequest, DiskFull (quota of the
/// database), TimedOut (no leader, overloaded), SystemError; MalformedMessage for a body that is
/// not such an error.
Error error_of_reply(int http_status, std::string_view body);

/// True for the refusal of a token that has expired or is from before a change of etcd's users.
/// The refused request was not executed.
bool is_invalid_token(std::string_view body);

}  // namespace leasehold::etcd

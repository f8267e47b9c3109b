/// Parses and writes one line of a control connection: the JSON-RPC 2.0 envelope of a payload.
///
/// Internal to ipc/control. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "ipc/control/transport/peer.hpp"

namespace leasehold::control {

struct IncomingCall {
  Json id;  ///< Text or an integer; the reply repeats it unchanged.
  std::string method;
  Json params;
};

struct IncomingNotification {
  std::string method;
  Json params;
};

struct IncomingReply {
  Json id;
  Result<Json> result;
};

/// An invalid line. The peer replies with the error, and with the id if the line has one.
struct RejectedMessage {
  Json id;
  Error error;
  int number;  ///< JSON-RPC error number.
};

struct Envelope {
  std::size_t fds = 0;  ///< Number of descriptors that the line declares.
  std::variant<IncomingCall, IncomingNotification, IncomingReply, RejectedMessage> content;
};

/// Never fails: a line that is invalid, or for which there is not enough memory, becomes a
/// RejectedMessage. Checks the depth before it builds anything. Objects lose the order of their
/// members, except the JSON schema of a request (wire::RequestSubmit), which becomes its text in
/// the original order.
Envelope parse_line(std::string_view line, const Limits& limits);

/// Returns the id found in the beginning of a line that is too long to be read; null without one.
Json id_of_partial_line(std::string_view begun);

// All results end with a newline. Invalid UTF-8 is written with replacement characters.
std::string call_line(std::uint64_t id, const std::string& method, const Payload& params);
std::string notification_line(const std::string& method, const Payload& params);
std::string result_line(const Json& id, const Payload& result);
std::string error_line(const Json& id, const Error& error);
std::string rejection_line(const RejectedMessage& refusal);

}  // namespace leasehold::control

/// One line of a control connection, read and written: the JSON-RPC 2.0 envelope around a payload.
///
/// Internal to ipc/control. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "ipc/control/peer.hpp"

namespace leasehold::control {

struct IncomingCall {
  Json id;  ///< Text or an integer, given back as it came.
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

/// What cannot be acted on. It is answered, with the id where one could be read.
struct RejectedMessage {
  Json id;
  Error error;
  int number;  ///< JSON-RPC's.
};

struct Envelope {
  std::size_t fds = 0;  ///< Descriptors the line says it came with.
  std::variant<IncomingCall, IncomingNotification, IncomingReply, RejectedMessage> content;
};

/// Never fails: what cannot be read is a RejectedMessage. Depth is counted before anything is
/// built. Objects lose the order of their members, but for a JSON schema of a request
/// (wire::Generate): that becomes its text, in which the order is kept.
Envelope parse_line(std::string_view line, const Limits& limits);

// All end with a newline. Text that is no UTF-8 goes out with replacement characters.
std::string call_line(std::uint64_t id, const std::string& method, const Payload& params);
std::string notification_line(const std::string& method, const Payload& params);
std::string result_line(const Json& id, const Payload& result);
std::string error_line(const Json& id, const Error& error);
std::string rejection_line(const RejectedMessage& refusal);

}  // namespace leasehold::control

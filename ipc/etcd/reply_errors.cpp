#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "ipc/control/messages/json_fields.hpp"
#include "ipc/control/transport/excess.hpp"
#include "ipc/etcd/json_gateway.hpp"

namespace leasehold::etcd {
namespace {

using Json = nlohmann::json;

// Source: google.golang.org/grpc/codes.
enum GrpcCode : int {
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  PermissionDenied = 7,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  OutOfRange = 11,
  Unimplemented = 12,
  Unavailable = 14,
  Unauthenticated = 16,
};

Error error_of(int code, const std::string& message) {
  const auto error = [&](Errc errc, std::string_view advice) {
    return Error{errc, fmt::format("etcd: {}; {}", message, advice)};
  };
  switch (code) {
    case PermissionDenied:
    case Unauthenticated:
      return error(Errc::PermissionDenied,
                   "check the user, its password file and its role (`etcdctl user get`)");
    case InvalidArgument:
      if (message.contains("authentication failed"))
        return error(Errc::PermissionDenied, "correct the user or its password file");
      if (message.contains("user name is empty"))
        return error(Errc::PermissionDenied,
                     "etcd has users: configure a user and its password file");
      return error(Errc::BadRequest, "check that etcd and Leasehold fit together");
    case OutOfRange:
      return error(Errc::BadRequest, "read the key again");
    case FailedPrecondition:
      return error(Errc::BadRequest, "enable authentication in etcd, or configure no user");
    case Unimplemented:
      return error(Errc::UnknownMethod, "use etcd 3.4 or newer");
    case ResourceExhausted:
      if (message.contains("space exceeded"))
        return error(Errc::DiskFull,
                     "compact and defragment etcd, then disarm its alarm (`etcdctl alarm disarm`)");
      return error(Errc::TimedOut, "etcd is overloaded; it is tried again");
    case Unavailable:
    case DeadlineExceeded:
      return error(Errc::TimedOut, "check etcd's members (`etcdctl endpoint status --cluster`)");
    default:
      return error(Errc::SystemError, "check etcd's log");
  }
}

struct Refusal {
  int code = 0;
  std::string message;
};

int code_in(const Json& json) {
  for (const char* name : {"code", "grpc_code"}) {
    const auto found = json.find(name);
    if (found == json.end()) continue;
    std::int32_t code = 0;
    if (!from_field(*found, code, Between<std::int32_t>{0, 1000})) return code;
  }
  return 0;
}

/// A body has the message as "message"; a line of a stream has an object "error" around it.
std::optional<Refusal> refusal_in(std::string_view body) {
  if (control::exceeded_limit(body, control::Limits{})) return std::nullopt;
  Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return std::nullopt;
  if (const auto inner = json.find("error"); inner != json.end() && inner->is_object()) {
    Json stream_error = *inner;
    json = std::move(stream_error);
  }
  for (const char* name : {"message", "error"}) {
    const auto found = json.find(name);
    if (found != json.end() && found->is_string())
      return Refusal{.code = code_in(json), .message = to_sentence(found->get<std::string>())};
  }
  return std::nullopt;
}

}  // namespace

Error error_of_reply(int http_status, std::string_view body) {
  if (const auto refusal = refusal_in(body)) return error_of(refusal->code, refusal->message);
  return Error{Errc::MalformedMessage,
               fmt::format("the server answers {} without an error of etcd; check that the URL is "
                           "that of an etcd 3.4 or newer",
                           http_status)};
}

bool is_invalid_token(std::string_view body) {
  const auto refusal = refusal_in(body);
  return refusal && (refusal->message.contains("invalid auth token") ||
                     refusal->message.contains("revision of auth store is old"));
}

}  // namespace leasehold::etcd

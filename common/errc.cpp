#include "common/errc.hpp"

#include <array>
#include <utility>

namespace leasehold {
namespace {

struct Row {
  Errc code;
  std::string_view name;
  bool retryable;
};

using enum Errc;

constexpr std::array<Row, kErrcCount> kRows{{
    {BadRequest, "BadRequest", false},
    {MalformedMessage, "MalformedMessage", false},
    {MessageTooLarge, "MessageTooLarge", false},
    {UnknownMethod, "UnknownMethod", false},
    {PermissionDenied, "PermissionDenied", false},
    {BadToken, "BadToken", false},
    {UnknownTenant, "UnknownTenant", false},
    {UnknownWorker, "UnknownWorker", false},
    {UnknownLease, "UnknownLease", false},
    {UnknownRequest, "UnknownRequest", false},
    {QuotaConcurrent, "QuotaConcurrent", true},
    {QuotaBlocks, "QuotaBlocks", false},
    {QueueFull, "QueueFull", true},
    {PoolExhausted, "PoolExhausted", true},
    {OutOfBlocks, "OutOfBlocks", true},
    {PromptTooLong, "PromptTooLong", false},
    {Draining, "Draining", true},
    {RebindRateLimited, "RebindRateLimited", true},
    {LeaseRevoked, "LeaseRevoked", false},
    {LeaseFenced, "LeaseFenced", false},
    {EngineLeaseFenced, "EngineLeaseFenced", false},
    {MissingWeight, "MissingWeight", false},
    {StaleGeneration, "StaleGeneration", false},
    {IllegalTransition, "IllegalTransition", false},
    {RequestIdConflict, "RequestIdConflict", false},
    {BrokerLost, "BrokerLost", true},
    {EngineDecodeFailed, "EngineDecodeFailed", true},
    {NoModelLoaded, "NoModelLoaded", true},
    {WeightsLoading, "WeightsLoading", true},
    {StillWritable, "StillWritable", true},
    {NumericFault, "NumericFault", false},
    {FileNotFound, "FileNotFound", false},
    {FileCorrupt, "FileCorrupt", false},
    {UnsupportedModel, "UnsupportedModel", false},
    {UntrustedSegment, "UntrustedSegment", false},
    {SocketInUse, "SocketInUse", false},
    {ConnectionRefused, "ConnectionRefused", true},
    {ConnectionLost, "ConnectionLost", true},
    {TimedOut, "TimedOut", true},
    {DiskFull, "DiskFull", true},
    {OutOfMemory, "OutOfMemory", true},
    {SystemError, "SystemError", false},
    {NoDevice, "NoDevice", false},
    {DeviceUnsupported, "DeviceUnsupported", false},
    {DeviceFault, "DeviceFault", true},
    {StaleGraph, "StaleGraph", true},
}};

constexpr bool rows_follow_the_enum() {
  for (int i = 0; i < kErrcCount; ++i) {
    if (static_cast<int>(kRows[static_cast<std::size_t>(i)].code) != i) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

const Row& row(Errc code) {
  return kRows[static_cast<std::size_t>(code)];
}

}  // namespace

std::string_view name(Errc code) {
  return row(code).name;
}

std::optional<Errc> errc_from_name(std::string_view text) {
  for (const Row& candidate : kRows) {
    if (candidate.name == text) return candidate.code;
  }
  return std::nullopt;
}

bool is_retryable(Errc code) {
  return row(code).retryable;
}

int exit_code(Errc code) {
  return 10 + static_cast<int>(code);
}

}  // namespace leasehold

#include "tools/cli/explain.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace leasehold::cli {

std::string_view next_step(Errc code) {
  switch (code) {
    case Errc::BadRequest:
      return "correct the value named above, see --help";
    case Errc::MalformedMessage:
    case Errc::UnknownMethod:
      return "check that all programs are of the same version";
    case Errc::MessageTooLarge:
    case Errc::PromptTooLong:
      return "send less";
    case Errc::PermissionDenied:
      return "run as the broker's user, or as the user the tenant is bound to";
    case Errc::BadToken:
    case Errc::StaleGeneration:
    case Errc::LeaseFenced:
      return "acquire a fresh lease; a lease that is over never comes back";
    case Errc::LeaseRevoked:
      return "acquire a fresh lease, or let leasehold-tenant do so with --rebind";
    case Errc::EngineLeaseFenced:
    case Errc::EngineDecodeFailed:
    case Errc::MissingWeight:
    case Errc::NumericFault:
      return "look at the worker's log, and at `brokerctl workers`";
    case Errc::UnknownTenant:
      return "admit it with `brokerctl admit`, see `brokerctl tenants`";
    case Errc::UnknownWorker:
    case Errc::NoModelLoaded:
      return "see `brokerctl workers` for the ones that are ready";
    case Errc::UnknownLease:
      return "see `brokerctl leases` for the ones there are";
    case Errc::UnknownRequest:
      return "check the request id";
    case Errc::QuotaConcurrent:
      return "wait for one of the tenant's requests to end, or raise --max-concurrent";
    case Errc::QuotaBlocks:
      return "ask for fewer blocks, or raise --max-blocks with `brokerctl admit`";
    case Errc::PoolExhausted:
    case Errc::OutOfBlocks:
      return "wait for memory to come back, see `brokerctl status`, or revoke a lease";
    case Errc::QueueFull:
    case Errc::Draining:
    case Errc::RebindRateLimited:
    case Errc::WeightsLoading:
    case Errc::StillWritable:
      return "try again in a moment";
    case Errc::IllegalTransition:
      return "see `brokerctl leases` for the lease's state";
    case Errc::RequestIdConflict:
      return "use another --request-id";
    case Errc::BrokerLost:
    case Errc::ConnectionRefused:
    case Errc::FileNotFound:
      return "is leasehold-broker running? name its socket with --socket or LEASEHOLD_BROKER";
    case Errc::ConnectionLost:
      return "is the process at the other end still running? its log says why it left";
    case Errc::TimedOut:
      return "try again; when it stays so, look at the broker's and the worker's log";
    case Errc::FileCorrupt:
    case Errc::UnsupportedModel:
      return "use another file";
    case Errc::UntrustedSegment:
      return "check who else may write to the broker's files";
    case Errc::SocketInUse:
      return "end the program that listens there, or choose another path";
    case Errc::DiskFull:
    case Errc::OutOfMemory:
      return "make room and try again";
    case Errc::SystemError:
      return "the message above is the system's; look at the logs";
  }
  return "look at the logs";
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? ' ' : c;
  }
  return out;
}

std::string explain(std::string_view program, const Error& error) {
  return fmt::format("{}: {} ({}); next: {}", program, printable(error.detail), name(error.code),
                     next_step(error.code));
}

namespace {

std::string error_line(std::string_view code, std::string_view detail, std::string_view next,
                       int exit_code, bool retryable) {
  const nlohmann::json line{{"error",
                             {{"code", code},
                              {"detail", detail},
                              {"next", next},
                              {"exit_code", exit_code},
                              {"retryable", retryable}}}};
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string explain_json(const Error& error) {
  return error_line(name(error.code), error.detail, next_step(error.code), exit_code(error.code),
                    is_retryable(error.code));
}

std::string usage_json(std::string_view text) {
  const std::string_view whole = text.substr(0, text.find_last_not_of(" \n") + 1);
  return error_line(name(Errc::BadRequest), whole, next_step(Errc::BadRequest), kExitUsage, false);
}

}  // namespace leasehold::cli

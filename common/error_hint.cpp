#include "common/error_hint.hpp"

namespace leasehold {

std::string_view error_hint(Errc code) {
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
      return "run as a permitted user: the broker's, the tenant's, or the file's owner";
    case Errc::BadToken:
    case Errc::StaleGeneration:
    case Errc::LeaseFenced:
      return "acquire a new lease; an ended lease is never restored";
    case Errc::LeaseRevoked:
      return "acquire a new lease, or start leasehold-tenant with --rebind";
    case Errc::EngineLeaseFenced:
    case Errc::EngineDecodeFailed:
    case Errc::MissingWeight:
    case Errc::NumericFault:
      return "check the worker's log and `brokerctl workers`";
    case Errc::UnknownTenant:
      return "admit it with `brokerctl tenants admit`; `brokerctl tenants` lists all";
    case Errc::UnknownWorker:
    case Errc::NoModelLoaded:
      return "choose a ready worker from `brokerctl workers`";
    case Errc::UnknownLease:
      return "choose a lease from `brokerctl leases`";
    case Errc::UnknownRequest:
      return "check the request id";
    case Errc::QuotaConcurrent:
      return "wait for one of the tenant's requests to end, or raise --max-concurrent";
    case Errc::QuotaBlocks:
      return "ask for fewer blocks, or raise --max-blocks with `brokerctl tenants admit`";
    case Errc::PoolExhausted:
    case Errc::OutOfBlocks:
      return "wait for free memory (`brokerctl status`), or revoke a lease";
    case Errc::QueueFull:
    case Errc::Draining:
    case Errc::RebindRateLimited:
    case Errc::WeightsLoading:
    case Errc::StillWritable:
      return "try again in a moment";
    case Errc::IllegalTransition:
      return "check the lease's state with `brokerctl leases`";
    case Errc::RequestIdConflict:
      return "use another --request-id";
    case Errc::FileNotFound:
      return "check the path and the option or variable that names it";
    case Errc::BrokerLost:
    case Errc::ConnectionRefused:
      return "check that leasehold-broker runs; name its socket with --socket or LEASEHOLD_BROKER, "
             "for a worker with --broker";
    case Errc::ConnectionLost:
      return "check that the other process still runs; its log says why it ended";
    case Errc::TimedOut:
      return "try again; if it persists, check the logs of broker and worker";
    case Errc::FileCorrupt:
    case Errc::UnsupportedModel:
      return "use another file";
    case Errc::UntrustedSegment:
      return "check which other users can write to the broker's files";
    case Errc::SocketInUse:
      return "stop the program that listens there, or choose another path";
    case Errc::DiskFull:
    case Errc::OutOfMemory:
      return "free disk space and try again";
    case Errc::NoDevice:
      return "check `nvidia-smi`, or use --device cpu";
    case Errc::DeviceUnsupported:
      return "install a newer driver, build for this card's architecture, or use --device cpu";
    case Errc::DeviceFault:
      return "check the worker's log and `nvidia-smi`, then restart the worker";
    case Errc::StaleGraph:
      return "try again; the step is captured again";
    case Errc::SystemError:
      return "check the logs; the message above is the system's";
  }
  return "check the logs";
}

std::optional<Errc> errc_from_exit_code(int wanted) {
  for (int i = 0; i < kErrcCount; ++i) {
    if (exit_code(static_cast<Errc>(i)) == wanted) return static_cast<Errc>(i);
  }
  return std::nullopt;
}

}  // namespace leasehold

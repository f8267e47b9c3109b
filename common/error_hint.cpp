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
      return "run as a user who may: the broker's, the one the tenant is bound to, or the file's";
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
      return "admit it with `brokerctl tenants admit`, see `brokerctl tenants`";
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
      return "ask for fewer blocks, or raise --max-blocks with `brokerctl tenants admit`";
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
    case Errc::FileNotFound:
      return "check the path, and the option or variable it came from";
    case Errc::BrokerLost:
    case Errc::ConnectionRefused:
      return "is leasehold-broker running? name its socket with --socket or LEASEHOLD_BROKER, to a "
             "worker "
             "with --broker";
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
    case Errc::NoDevice:
      return "check `nvidia-smi`, or ask for --device cpu";
    case Errc::DeviceUnsupported:
      return "install a newer driver, build for this card's architecture, or ask for --device cpu";
    case Errc::DeviceFault:
      return "look at the worker's log and at `nvidia-smi`; start the worker again";
    case Errc::StaleGraph:
      return "try again; the step is captured anew";
    case Errc::SystemError:
      return "the message above is the system's; look at the logs";
  }
  return "look at the logs";
}

std::optional<Errc> errc_from_exit_code(int wanted) {
  for (int i = 0; i < kErrcCount; ++i) {
    if (exit_code(static_cast<Errc>(i)) == wanted) return static_cast<Errc>(i);
  }
  return std::nullopt;
}

}  // namespace leasehold

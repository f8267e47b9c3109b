#include "tools/brokerctl/next_step.hpp"

#include <fmt/format.h>

#include "common/cli/print_error.hpp"

namespace leasehold::brokerctl {

std::string next_step(const Verb& verb, const Error& error) {
  const auto* const cell = std::get_if<AskCell>(&verb);
  if (cell == nullptr) return std::string(error_hint(error));
  switch (error.code) {
    case Errc::ConnectionRefused:
    case Errc::ConnectionLost:
    case Errc::TimedOut:
      return fmt::format(
          "run the same command again; if it persists, check that etcd runs at the "
          "addresses in {}",
          cell->config);
    case Errc::MalformedMessage:
    case Errc::MessageTooLarge:
      return fmt::format("correct the addresses of etcd in {}", cell->config);
    case Errc::PermissionDenied:
      return fmt::format(
          "check etcd-ca, etcd-user and etcd-password-file in {}, and the user's "
          "role (`brokerctl cell roles`)",
          cell->config);
    case Errc::UnknownTenant:
      return "admit it with `brokerctl cell tenants admit`; `brokerctl cell tenants` lists all";
    case Errc::UnknownWorker:
      return "choose a host from `brokerctl cell hosts`";
    case Errc::IllegalTransition:
      return "see the hosts with `brokerctl cell hosts`";
    default:
      return std::string(error_hint(error));
  }
}

}  // namespace leasehold::brokerctl

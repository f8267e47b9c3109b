/// Command line of leasehold-gateway.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/cli/config_reload.hpp"
#include "ipc/http/http_address.hpp"
#include "ipc/http/http_host.hpp"
#include "ipc/http/trusted_proxies.hpp"
#include "tools/cell/config/etcd_options.hpp"
#include "tools/gateway/host_address.hpp"

namespace leasehold::gateway {

struct CertificateFiles {
  std::string certificate;
  std::string key;
};

struct Options {
  std::vector<HostAddress> hosts;         ///< Empty: those of the cell.
  std::optional<cell::CellAddress> cell;  ///< Nothing: the hosts are a list.
  bool plaintext_hosts = false;
  std::string host_ca;  ///< Empty: the authorities that the system trusts.
  http::Address listen;
  std::optional<CertificateFiles> certificate;  ///< Nothing: clients are not encrypted.
  http::TrustedProxies trusted_proxies;
  std::optional<http::Address> metrics;
  http::HostRule metrics_hosts;
  std::chrono::milliseconds beat{500};
  std::chrono::milliseconds move_timeout{30'000};
  std::chrono::milliseconds drain_timeout{30'000};
  std::uint32_t moves = 8;
  std::string log_level = "info";
  ConfigValues config;
};

/// The options, or the exit code to end with.
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace leasehold::gateway

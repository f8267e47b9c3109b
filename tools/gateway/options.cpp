#include "tools/gateway/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/cli/command_line.hpp"
#include "common/cli/config_file.hpp"
#include "common/cli/version.hpp"
#include "ipc/http/tls/tls.hpp"

namespace leasehold::gateway {
namespace {

constexpr std::uint32_t kMaxMoves = 64;
constexpr std::uint32_t kMinBeatMs = 50;
constexpr std::uint32_t kMaxBeatMs = 10'000;
constexpr std::uint32_t kMaxTimeoutMs = 3'600'000;

/// The options as texts, before they are parsed.
struct Texts {
  std::vector<std::string> hosts;
  std::vector<std::string> trusted_proxies;
  std::string listen = "127.0.0.1:8090";
  std::string certificate;
  std::string key;
  std::string metrics;
  std::uint32_t beat_ms = 500;
  std::uint32_t move_timeout_ms = 30'000;
  std::uint32_t drain_timeout_ms = 30'000;
  bool any_address = false;
  std::string cell;
};

void add_options(CLI::App& app, Texts& texts, Options& options) {
  app.add_option("--hosts", texts.hosts,
                 "Send texts to these workers: https://HOST:PORT, http://HOST:PORT or unix:/PATH; "
                 "may be repeated; read again on SIGHUP");
  app.add_option("--cell", texts.cell,
                 "Take the hosts from a cell: the path of a file with etcd, a user of it and the "
                 "cell, which the gateway's user can read")
      ->check(check_file_path);
  app.add_option("--listen", texts.listen,
                 "Serve clients here: an address, or the absolute path of a Unix socket")
      ->capture_default_str();
  app.add_option(
      "--tls-certificate", texts.certificate,
      "PEM file with the certificate chain that clients are shown; read again on SIGHUP");
  app.add_option("--tls-key", texts.key, "PEM file with the private key of --tls-certificate");
  app.add_flag("--http-any-address", texts.any_address,
               "Allow --listen without a certificate on an address that other machines reach");
  app.add_option("--host-ca", options.host_ca,
                 "PEM file with the authorities that sign the certificates of https hosts, read "
                 "again on SIGHUP; default: those of the system");
  app.add_flag("--plaintext-hosts", options.plaintext_hosts,
               "Allow http:// hosts on other machines: anyone on the way reads prompts and keys");
  app.add_option("--trusted-proxies", texts.trusted_proxies,
                 "Believe X-Forwarded-For of this address, network or uid:N; may be repeated");
  app.add_option("--beat-ms", texts.beat_ms,
                 "Milliseconds between signs of life that hosts send; after two missing ones "
                 "a text continues elsewhere")
      ->check(CLI::Range(kMinBeatMs, kMaxBeatMs))
      ->capture_default_str();
  app.add_option("--move-timeout-ms", texts.move_timeout_ms,
                 "Milliseconds that a text waits for a host before it ends with an error")
      ->check(CLI::Range(1u, kMaxTimeoutMs))
      ->capture_default_str();
  app.add_option("--moves", options.moves, "Number of times that a text may continue elsewhere")
      ->check(CLI::Range(0u, kMaxMoves))
      ->capture_default_str();
  app.add_option("--drain-timeout-ms", texts.drain_timeout_ms,
                 "Milliseconds that running texts have to end after SIGTERM")
      ->check(CLI::Range(0u, kMaxTimeoutMs))
      ->capture_default_str();
  app.add_option("--metrics", texts.metrics,
                 "Serve /metrics for Prometheus here, without a key: an address or the path of a "
                 "Unix socket");
  app.add_option("--metrics-host", options.metrics_hosts.names,
                 "Answer requests of metrics for this name too; may be repeated");
  app.add_option("--log-level", options.log_level, "Least severe level to log")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
}

Error named(std::string_view option, Error error) {
  error.detail = fmt::format("{}: {}", option, error.detail);
  return error;
}

/// A package gives the agent and the gateway each a file that the other one cannot read.
Error of_cell_file(Error error, const std::string& path) {
  const bool is_readable = ::access(path.c_str(), R_OK) == 0;
  if (error.code == Errc::PermissionDenied && !is_readable) {
    error.detail += fmt::format(
        "; this gateway is user {}, who needs a file of its own, such as "
        "/etc/leasehold/gateway-cell.toml with the group leasehold-gateway and mode 0640",
        ::geteuid());
  }
  return named("--cell", std::move(error));
}

Result<std::vector<HostAddress>> hosts_of(const Texts& texts, bool allows_plaintext) {
  std::vector<HostAddress> hosts;
  for (const std::string& text : texts.hosts) {
    auto host = HostAddress::parse(text);
    if (!host) return std::unexpected(named("--hosts", host.error()));
    if (host->is_exposed() && !allows_plaintext) {
      return fail(
          Errc::BadRequest,
          fmt::format("--hosts: {} is on another machine and not encrypted; write https://, "
                      "or add --plaintext-hosts to send prompts and keys in the clear",
                      text));
    }
    if (std::ranges::find(hosts, *host) != hosts.end())
      return fail(Errc::BadRequest, fmt::format("--hosts: {} is named twice; remove one", text));
    hosts.push_back(*std::move(host));
  }
  return hosts;
}

Result<void> understand(const Texts& texts, Options& options) {
  if (texts.hosts.empty() && texts.cell.empty())
    return fail(Errc::BadRequest, "a gateway needs its hosts: give either --hosts or --cell");
  if (!texts.hosts.empty() && !texts.cell.empty())
    return fail(Errc::BadRequest, "--hosts and --cell exclude each other; remove one");
  options.hosts = TRY(hosts_of(texts, options.plaintext_hosts));
  if (!texts.cell.empty()) {
    auto found = cell::read_cell_file(texts.cell);
    if (!found) return std::unexpected(of_cell_file(found.error(), texts.cell));
    options.cell = *std::move(found);
  }
  if (texts.certificate.empty() != texts.key.empty()) {
    return fail(Errc::BadRequest, texts.key.empty() ? "--tls-certificate needs --tls-key"
                                                    : "--tls-key needs --tls-certificate");
  }
  if (!texts.key.empty()) options.certificate = {texts.certificate, texts.key};
  auto listen = http::Address::parse(texts.listen, true);
  if (!listen) return std::unexpected(named("--listen", listen.error()));
  const bool is_local = http::Address::parse(texts.listen, false).has_value();
  if (!is_local && !texts.any_address && !options.certificate) {
    return fail(Errc::BadRequest,
                fmt::format("--listen: other machines reach {}; add --tls-certificate and "
                            "--tls-key, or --http-any-address to serve without encryption",
                            texts.listen));
  }
  options.listen = *std::move(listen);
  auto proxies = http::TrustedProxies::parse(texts.trusted_proxies);
  if (!proxies) return std::unexpected(named("--trusted-proxies", proxies.error()));
  options.trusted_proxies = *std::move(proxies);
  if (!texts.metrics.empty()) {
    auto metrics = http::Address::parse(texts.metrics, texts.any_address);
    if (!metrics) return std::unexpected(named("--metrics", metrics.error()));
    options.metrics_hosts = http::HostRule::at(*metrics, std::move(options.metrics_hosts.names));
    options.metrics = *std::move(metrics);
  }
  options.beat = std::chrono::milliseconds(texts.beat_ms);
  options.move_timeout = std::chrono::milliseconds(texts.move_timeout_ms);
  options.drain_timeout = std::chrono::milliseconds(texts.drain_timeout_ms);
  return {};
}

Result<void> check_files(const Options& options) {
  TRY(http::TlsClient::load(options.host_ca, "--host-ca"));
  if (!options.certificate) return {};
  TRY(http::TlsServer::load(options.certificate->certificate, options.certificate->key));
  return {};
}

}  // namespace

std::variant<Options, int> parse_options(int argc, char** argv) {
  Options options;
  Texts texts;
  CLI::App app{"Serve many workers under one address, and continue the texts of those that die",
               "leasehold-gateway"};
  app.set_version_flag("--version", "leasehold-gateway " + std::string(version()));
  add_config_options(app);
  add_options(app, texts, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  if (const auto understood = understand(texts, options); !understood)
    return print_error(app.get_name(), Usage{.text = understood.error().detail});
  if (const auto ended = finish_config(app, [&] { return check_files(options); })) return *ended;
  auto values = config_values(app);
  if (!values) return print_error(app.get_name(), values.error());
  options.config = *std::move(values);
  return options;
}

}  // namespace leasehold::gateway

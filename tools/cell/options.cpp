#include "tools/cell/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "common/cli/command_line.hpp"
#include "common/cli/config_file.hpp"
#include "common/cli/version.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {
namespace {

constexpr std::size_t kMaxDoorBytes = 256;

/// The options as texts, before they are parsed.
struct Texts {
  EtcdTexts etcd;
  std::string host;
};

void add_options(CLI::App& app, Texts& texts, Options& options) {
  add_etcd_options(app, texts.etcd);
  app.add_option("--host", texts.host, "Name of this host, which no other host of the cell has")
      ->required()
      ->check(check_name);
  app.add_option("--broker", options.broker_socket, "Socket of the broker of this host")
      ->required()
      ->check(check_socket_path);
  app.add_option("--listen", options.socket,
                 "Unix socket at which workers ask for keys that the broker does not know; "
                 "default: none")
      ->check(check_socket_path);
  app.add_option("--door", options.doors,
                 "Address at which gateways reach a worker of this host; may be repeated");
  app.add_option("--state-dir", options.state_directory,
                 "Directory for what a restarted agent needs, below /run")
      ->required()
      ->check(check_directory_path);
  app.add_option("--log-level", options.log_level, "Least severe level to log")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
}

/// The rest of a record needs about 200 bytes.
Result<void> check_doors(const std::vector<std::string>& doors) {
  std::size_t bytes = 0;
  for (const std::string& door : doors) bytes += door.size();
  if (bytes <= kMaxDoorBytes) return {};
  return fail(Errc::BadRequest, fmt::format("the texts of --door have {} bytes; shorten them to {}",
                                            bytes, kMaxDoorBytes));
}

Result<void> understand(const Texts& texts, Options& options) {
  options.address = TRY(cell::understand(texts.etcd));
  options.host = TRY(HostName::parse(texts.host));
  if (options.doors.size() > HostRecord::kMaxDoors) {
    return fail(Errc::BadRequest, fmt::format("--door is given {} times; give it at most {} times",
                                              options.doors.size(), HostRecord::kMaxDoors));
  }
  return check_doors(options.doors);
}

}  // namespace

std::variant<Options, int> parse_options(int argc, char** argv) {
  Options options;
  Texts texts;
  CLI::App app{"Join this host to a cell of hosts on etcd", "leasehold-cell"};
  app.set_version_flag("--version", "leasehold-cell " + std::string(version()));
  add_config_options(app);
  add_options(app, texts, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  if (const auto understood = understand(texts, options); !understood)
    return print_error(app.get_name(), Usage{.text = understood.error().detail});
  if (const auto ended = finish_config(app)) return *ended;
  return options;
}

}  // namespace leasehold::cell
